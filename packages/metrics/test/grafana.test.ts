// needs: agents
// examples/grafana beside the metrics that it queries.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
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
  targets?: { expr: string }[];
}

const dashboard = JSON.parse(read('numalign.json')) as {
  panels: Panel[];
  templating: { list: { name: string; definition?: string }[] };
};

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
