// needs: agents
// examples/grafana beside the metrics that it queries.
import { readFileSync } from 'node:fs';
import { ENFORCEMENT_LEVELS } from 'numalign/tools';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { collect, openReal } from '../../../test/support/collected.js';

const folder = new URL('../../../examples/grafana/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');

interface Panel {
  id: number;
  type: string;
  title: string;
  datasource?: { uid: string };
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; legendFormat?: string }[];
}

const dashboard = JSON.parse(read('numalign.json')) as {
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
};

// Prometheus adds these to each series.
const OF_TARGET = ['instance', 'job'];

const SELECTOR = /\b((?:kubelet|numalign|resource_manager)_\w+)(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)(?:=~|!=|=)"/g;

/** The labels that a query groups by, and those in its legend. */
function labelsAsked(expr: string, legend = ''): string[] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(', '));
  return [...grouped, ...Array.from(legend.matchAll(/\{\{(\w+)\}\}/g), ([, label]) => label!)];
}

const namesIn = (expression: string) =>
  expression.match(/\b(?:kubelet|numalign|resource_manager)_\w+/g) ?? [];

describe('examples/grafana', () => {
  it('queries only existing metrics, and every one of a grant', async () => {
    const { scrape } = collect(await openReal(), { watch: true, audit: true, grants: { memory: true } });
    const { types } = await scrape();
    const alerts = parseAllDocuments(read('alerts.yaml'))[0]!.toJS() as {
      groups: { rules: { alert: string; expr: string }[] }[];
    };
    const asked = [
      ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
      ...dashboard.templating.list.map(({ definition = '' }) => definition),
      ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ].flatMap(namesIn);
    expect(asked.filter((name) => !(name in types))).toEqual([]);
    const ofGrants = Object.keys(types).filter((name) => name.startsWith('numalign_grant_'));
    expect(ofGrants.filter((name) => !asked.includes(name))).toEqual([]);
  });

  it('selects series that there are, by labels and values that they have', async () => {
    const manager = await openReal();
    const { register } = collect(manager, { watch: true, audit: true, grants: { memory: true } });
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    grant.pin();
    onTestFinished(async () => {
      await grant.release();
    });
    // A flag.
    await manager.configure({ reservedSystemCPUs: String(grant.cpus) });
    await register.metrics();
    const labelsOf = new Map(
      (await register.getMetricsAsJSON()).map(({ name, values }) => [
        name,
        values.flatMap(({ labels }) => Object.keys(labels)),
      ]),
    );
    const queries = dashboard.panels.flatMap(({ targets = [] }) => targets);
    let selected = 0;
    for (const { expr, legendFormat } of queries) {
      for (const [, name, matchers = ''] of expr.matchAll(SELECTOR)) {
        const labels = labelsOf.get(name!)!;
        const matched = Array.from(matchers.matchAll(MATCHER), ([, label]) => label!);
        const asked = [...matched, ...labelsAsked(expr, legendFormat)];
        // What this kernel does not count has no series.
        if (labels.length > 0) {
          selected++;
          const unknown = asked.filter((label) => ![...labels, ...OF_TARGET].includes(label));
          expect([name, unknown]).toEqual([name, []]);
        }
        const levels = Array.from(matchers.matchAll(/level="(\w+)"/g), ([, level]) => level);
        expect(ENFORCEMENT_LEVELS).toEqual(expect.arrayContaining(levels));
      }
    }
    expect(selected).toBeGreaterThan(15);
  });

  it('has panels beside each other, each with a title and a query of the chosen data source', () => {
    const { panels, templating } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = new Set<string>();
    for (const { type, title, targets, datasource, gridPos } of panels) {
      const { x, y, w, h } = gridPos;
      expect([title, x + w <= 24]).toEqual([title, true]);
      for (let i = 0; i < w * h; i++) {
        const cell = `${x + (i % w)} ${y + Math.floor(i / w)}`;
        expect([title, cells.has(cell)]).toEqual([title, false]);
        cells.add(cell);
      }
      if (type === 'row') continue;
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana's
      expect([title, datasource?.uid, targets?.length]).toEqual([title, '${datasource}', 1]);
    }
    const variables = new Set(templating.list.map(({ name }) => name));
    const used = panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => expr.match(/\$(\w+)/g) ?? []),
    );
    const known = (name: string) => name.startsWith('$__') || variables.has(name.slice(1));
    expect(used.filter((name) => !known(name))).toEqual([]);
  });
});
