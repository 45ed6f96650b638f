// needs: folders
// docs/reference/api.md beside the package: every export, every member, and a description of each.
import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { codeIn, hintAtDocs, read, section } from '../support/documents.js';
import * as numalign from '../support/package.js';

const isProse = (line: string) =>
  /^[A-Z].* .*/.test(line) && !/^(?:Types|Has|Throws|Methods|In TypeScript)\b/.test(line);

/** The members that a section shows, or names as those of another export. */
function membersIn(text: string): string[] {
  const items = [...text.matchAll(/^- `([\w.]+)/gm)].map(([, name]) => name!);
  const methods = [...text.matchAll(/^#### (?:[a-z]\w*\.)?([\w.]+)\(/gm)].map(([, name]) => name!);
  const others = [...text.matchAll(/^Has the members of [^:]*:(.*?)\.\n\n/gms)].flatMap(([, list]) =>
    codeIn(list!),
  );
  return [...items, ...methods, ...others];
}

/** Whether an item of a list has words beside its code and links. */
const hasWords = (item: string) =>
  /:\s\W*\w/.test(item.replace(/\[[^\]]*\]\([^)]*\)/g, '').replace(/`[^`]*`/g, ''));

describe('docs/reference/api.md', () => {
  hintAtDocs();
  const page = read('docs/reference/api.md');

  it('describes every export', () => {
    const headings = [...page.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading!);
    expect(headings.length).toBeGreaterThan(200);
    const plain = headings.filter((heading) => {
      const [text] = section(page, `### ${heading}`).split(/\n(?:- `|#### )/);
      return !text!.split('\n').some(isProse);
    });
    expect(plain).toEqual([]);
  });

  it('says of every member what it is', () => {
    const items = page.split(/\n(?=- `|\n)/).filter((item) => item.trimStart().startsWith('- `'));
    expect(items.length).toBeGreaterThan(700);
    expect(items.filter((item) => !hasWords(item))).toEqual([]);
    const methods = [...page.matchAll(/^#### .+$/gm)].map(([heading]) => heading);
    expect(methods.length).toBeGreaterThan(120);
    const plain = methods.filter((heading) => !section(page, heading).split('\n').some(isProse));
    expect(plain).toEqual([]);
  });

  it('says of every value of a type what it means, or where that is said', () => {
    const types = [...page.matchAll(/^### (.+)\n\n`('[\w-]+'(?: \| '[\w-]+')+)`\n\n([^#]+)/gm)];
    expect(types.length).toBeGreaterThan(12);
    const unsaid = types.flatMap(([, name, union, prose]) => {
      if (prose!.includes('](')) return [];
      const said = codeIn(prose!);
      return [...union!.matchAll(/'([\w-]+)'/g)].flatMap(([, value]) =>
        said.includes(value!) ? [] : `${value} of ${name}`,
      );
    });
    expect(unsaid).toEqual([]);
  });

  it.each([
    ['numalign', 60],
    ['numalign/topology', 29],
    ['numalign/kubelet', 37],
    ['numalign/diagnostics', 60],
  ])('has no more exports of %s than a reader can take in', (entry, most) => {
    const [lists] = section(page, `## ${entry}`).split('\n### ');
    expect([...lists!.matchAll(/\[\w+\]\(/g)].length).toBeLessThanOrEqual(most);
  });

  it('has every member of every class', async () => {
    const topology = await numalign.discover({ synthetic: 'core:2 pu:1' });
    const manager = await numalign.openManager({ topology });
    const instances = {
      Manager: manager,
      Grant: await manager.acquire({ cpu: 1 }),
      Pod: await manager.admit({ containers: [{ name: 'main', limits: { memory: 1 } }] }),
      Topology: topology,
      CpuSet: numalign.CpuSet.EMPTY,
      HintFamily: topology.cpuHints({ request: 1, available: topology.cpus }),
    };
    const documented = (name: string) => membersIn(section(page, `### ${name}`));
    // Of all emitters, and what only subclasses need.
    const inherited = new Set([...Object.getOwnPropertyNames(Object.prototype), 'make', 'self', 'kind']);
    for (const [name, instance] of Object.entries(instances)) {
      const found = new Set<string>();
      for (
        let at: object | null = instance;
        at && at.constructor !== EventEmitter;
        at = Object.getPrototypeOf(at)
      ) {
        for (const member of Object.getOwnPropertyNames(at)) if (!member.startsWith('_')) found.add(member);
      }
      // Everything has a text of some kind.
      const members = documented(name);
      const missing = [...found].filter((member) => !inherited.has(member) && !members.includes(member));
      expect([name, missing]).toEqual([name, []]);
    }
    const { CpuSet, HintFamily } = numalign;
    for (const [name, type] of Object.entries({ CpuSet, HintFamily })) {
      const found = Object.getOwnPropertyNames(type).filter(
        (member) => !['length', 'name', 'prototype'].includes(member),
      );
      const members = documented(name);
      expect(found.filter((member) => !members.includes(`${name}.${member}`))).toEqual([]);
    }
  });
});
