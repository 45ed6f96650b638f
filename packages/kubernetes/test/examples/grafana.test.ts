// The board and the alerts of grafana/, and docs/operations.md, beside the metrics that there are.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { openMetrics } from '../../lib/cli/serving.js';
import { NodeAgent } from '../../lib/node-agent.js';

const FOLDER = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8');

interface Panel {
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { uid: string };
  targets?: { expr: string; legendFormat: string }[];
}

const board = JSON.parse(read('grafana/numalign-node.json')) as { panels: Panel[] };
const panels = board.panels.filter(({ type }) => type !== 'row');
const queries = panels.map(({ title, targets }) => ({ title, ...targets![0]! }));
const alerts = (parseYaml(read('grafana/alerts.yaml')) as { groups: { rules: { expr: string }[] }[] }).groups
  .flatMap(({ rules }) => rules)
  .map(({ expr }) => expr);

interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labelNames: readonly string[];
}

/** The agent's own metrics, by name. */
const metrics = new Map<string, Metric>();

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-board-'));
  const manager = await openManager({ topology: await discover({ synthetic: 'numa:2 core:4 pu:1' }) });
  const node = await openMetrics(manager, { maxGrants: 0, version: '0.1.0' });
  const apiServer = { url: 'https://127.0.0.1:1', caFile: '/none', tokenFile: '/none' };
  new NodeAgent({
    ...{ manager, metrics: node, log: () => {}, devicePlugin: null, kubelet: null, publish: null },
    events: { nodeName: 'worker-1', apiServer },
    nri: { nriSocket: join(folder, 'nri.sock') },
  });
  for (const metric of node.register.getMetricsAsArray() as unknown as Metric[])
    if (/^(numalign_node|process)_/.test(metric.name)) metrics.set(metric.name, metric);
  manager.close();
  rmSync(folder, { recursive: true });
});

const NAME = /\b((?:numalign_node|process)_\w+?)(?:_bucket|_sum|_count)?(?=[{[\s),]|$)/g;
const namesIn = (text: string) => Array.from(text.matchAll(NAME), ([, name]) => name!);

describe('The board of numalign-node', () => {
  it('queries the metrics that there are, and each of them', () => {
    const asked = [...queries.map(({ expr }) => expr), ...alerts].flatMap(namesIn);
    expect(asked.filter((name) => !metrics.has(name))).toEqual([]);
    const unused = [...metrics.keys()].filter((name) => !asked.includes(name));
    expect(unused).toEqual(['process_start_time_seconds']);
  });

  it('asks for labels that the metrics have', () => {
    for (const { title, expr, legendFormat } of queries) {
      const [name] = namesIn(expr) as [string];
      const has = ['instance', 'job', 'le', ...metrics.get(name)!.labelNames];
      const grouped = Array.from(expr.matchAll(/\bby \(([^)]*)\)/g), ([, list]) => list!.split(', ')).flat();
      const matched = Array.from(expr.matchAll(/(\w+)(?:=~|!=|=)"/g), ([, label]) => label!);
      const shown = Array.from(legendFormat.matchAll(/\{\{(\w+)\}\}/g), ([, label]) => label!);
      expect([title, [...grouped, ...matched, ...shown].filter((label) => !has.includes(label))]).toEqual([
        title,
        [],
      ]);
    }
  });

  it('has panels beside each other, each with a title, a description and the chosen data source', () => {
    const cells = new Set<string>();
    for (const { title, description, datasource, gridPos, type } of board.panels) {
      const { x, y, w, h } = gridPos;
      expect([title, x + w <= 24]).toEqual([title, true]);
      for (let i = 0; i < w * h; i++) {
        const cell = `${x + (i % w)} ${y + Math.floor(i / w)}`;
        expect([title, cells.has(cell)]).toEqual([title, false]);
        cells.add(cell);
      }
      if (type === 'row') continue;
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana's
      expect([title, datasource?.uid]).toEqual([title, '${datasource}']);
      expect(description).not.toBe('');
    }
  });
});

describe('docs/operations.md', () => {
  it('has a line for each metric, with its labels', () => {
    const text = read('docs/operations.md');
    for (const { name, labelNames } of metrics.values())
      expect(text).toMatch(
        new RegExp(`^\\| \`${name}\` \\| ${labelNames.map((each) => `\`${each}\``).join(', ') || ''}`, 'm'),
      );
    const known = [...metrics.keys()];
    expect(namesIn(text.replaceAll('`', ' ')).filter((name) => !known.includes(name))).toEqual([]);
  });
});
