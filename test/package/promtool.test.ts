// The metrics, the alerts and the dashboard as Prometheus' own tool sees them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasApt, preparePromtool } from './promtool.js';
import { ROOT, run } from './tarball.js';

const folder = mkdtempSync(join(tmpdir(), 'numalign-promtool-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A page of metrics of this machine, with a grant that has done something. */
const PAGE = `
  import prom from 'prom-client';
  import { openManager } from 'numalign';
  import { collectMetrics } from '@numalign/metrics';
  const manager = await openManager({ stateDir: ${JSON.stringify(join(folder, 'state'))} });
  const grants = { memory: true };
  const { register } = collectMetrics(manager, { register: new prom.Registry(), watch: true, audit: true, grants });
  await manager.use({ cpu: 1, name: 'a "grant"\\\\n' }, async (grant) => {
    grant.pin();
    await register.metrics();
    process.stdout.write(await register.metrics());
  });
  manager.close();`;

// As the kubelet exposes them.
const KUBELETS = /^(kubelet|resource_manager)_/;

describe.runIf(hasApt)('promtool', () => {
  let program: string;
  beforeAll(() => {
    program = preparePromtool();
  });
  const promtool = (args: string[], input?: string) =>
    spawnSync(program, args, { encoding: 'utf8', ...(input !== undefined && { input }) });

  it('finds nothing in a page of metrics but the kubelet’s own names', () => {
    const { stdout } = run(process.execPath, ['--input-type=module', '-e', PAGE], { cwd: ROOT });
    expect(stdout).toMatch(/^numalign_grant_run_seconds_total\{grant="a \\"grant\\"/m);
    const { stderr } = promtool(['check', 'metrics'], stdout);
    const lines = stderr.split('\n').filter(Boolean);
    expect(lines.filter((line) => !KUBELETS.test(line))).toEqual([]);
    const broken = promtool(['check', 'metrics'], stdout.replaceAll('run_seconds_total', 'run_ms'));
    expect(broken.stderr).toContain('numalign_grant_run_ms');
  });

  it.each([
    ['examples/grafana/alerts.yaml', 'alerts.yaml'],
    ['packages/kubernetes/grafana/alerts.yaml', 'node-alerts.yaml'],
  ])('accepts the alerts of %s, which fire when they should', (path, tests) => {
    const alerts = join(ROOT, path);
    const check = promtool(['check', 'rules', alerts]);
    expect([check.status, check.stderr]).toEqual([0, '']);
    const file = join(ROOT, 'test/package', tests);
    const tested = promtool(['test', 'rules', file]);
    expect([tested.status, tested.stderr]).toEqual([0, '']);
    // Each alert has a test.
    const names = Array.from(readFileSync(alerts, 'utf8').matchAll(/alert: (\w+)/g), ([, name]) => name!);
    const text = readFileSync(file, 'utf8');
    expect(names.filter((name) => !text.includes(`alertname: ${name}`))).toEqual([]);
  });

  it.each(['examples/grafana/numalign.json', 'packages/kubernetes/grafana/numalign-node.json'])(
    'understands every query of %s',
    (path) => {
      const { panels } = JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as {
        panels: { targets?: { expr: string }[] }[];
      };
      const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
      const rules = queries.map((expr, i) => ({
        record: `query:${i}`,
        expr: expr.replaceAll('$__rate_interval', '5m'),
      }));
      const file = join(folder, 'queries.json');
      writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
      const { status, stdout } = promtool(['check', 'rules', file]);
      expect([status, /SUCCESS: (\d+) rules/.exec(stdout)?.[1]]).toEqual([0, `${queries.length}`]);
    },
  );
});
