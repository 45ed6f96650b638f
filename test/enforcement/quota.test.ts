// needs: machine
// CPU quotas and memory limits of the cgroups above: reported, not lifted. On the real kernel, in
// the test's own cgroups.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeStateDir } from '../support/state-dir.js';

const CPU = '/sys/fs/cgroup/cpu';
const canTry = existsSync(join(CPU, 'cpu.cfs_quota_us')) || existsSync(join(CPU, 'cgroup.procs'));
const INDEX = new URL('../../dist/index.js', import.meta.url).href;

const PROGRAM = `
const { openManager } = await import(${JSON.stringify(INDEX)});
const manager = await openManager({ stateDir: process.argv[1] });
const grant = await manager.acquire({ cpu: 1 });
console.log(JSON.stringify({ limits: grant.limits(), warnings: grant.warnings }));
await grant.release();
`;

async function runIn(group: string): Promise<{ limits: { cpuMax: unknown }; warnings: { code: string }[] }> {
  const child = spawn('sh', [
    '-c',
    'echo $$ > "$0/cgroup.procs" && exec "$@"',
    group,
    process.execPath,
    '--input-type=module',
    '-e',
    PROGRAM,
    makeStateDir(),
  ]);
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.pipe(process.stderr);
  await once(child, 'close');
  return JSON.parse(out);
}

describe.runIf(canTry && process.getuid?.() === 0)('the quota of a cgroup above', () => {
  const quota = (cpus: number | null) => {
    const group = join(CPU, `numalign-test-${process.pid}-${cpus}`);
    mkdirSync(group);
    onTestFinished(() => rmdirSync(group));
    if (cpus !== null) writeFileSync(join(group, 'cpu.cfs_quota_us'), String(cpus * 100_000));
    return group;
  };

  it('is reported, with a warning if it is below the CPUs of the grant', async () => {
    const group = quota(0.5);
    const { limits, warnings } = await runIn(group);
    expect(limits.cpuMax).toMatchObject({ path: group, cpus: 0.5, quotaUs: 50_000, periodUs: 100_000 });
    expect(warnings).toMatchObject([{ code: 'CPU_QUOTA', path: group, cpus: 0.5 }]);
  });

  it('causes no warning if it suffices, or if there is none', async () => {
    expect((await runIn(quota(1))).warnings).toEqual([]);
    const { limits, warnings } = await runIn(quota(null));
    expect([limits.cpuMax, warnings]).toEqual([null, []]);
  });
});
