// needs: modules
import { describe, expect, it, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import { type WiredFunctions, wired } from '../../lib/base/wire.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';

const words = (list: string) => CpuSet.parse(list).words;

it('is one object for all copies of the module in an environment', async () => {
  const one = await import('../../lib/base/native.js');
  vi.resetModules();
  const another = await import('../../lib/base/native.js');
  expect(another).not.toBe(one);
  const [first, second] = [one.native, another.native];
  const { handle } = await discover({ synthetic: 'core:16 pu:1' });
  second.wholeCores(handle, words('0-3'));
  const taken = first.bestFit({
    ...{ topology: handle, available: words('12-15'), count: 2, near: words('') },
    ...{ nearNodes: 0, cpuGroupSize: 1, flags: 0, later: [] },
  });
  expect(String(new CpuSet(taken))).toBe('12-13');
});

it('keeps its members when it grows', () => {
  let wire: { words: Uint32Array; amounts: Float64Array } | undefined;
  const seen: number[][] = [];
  const addon = {
    setWire: (list: Uint32Array, amounts: Float64Array) => {
      wire = { words: list, amounts };
    },
    memoryHints: () => {
      seen.push([...wire!.amounts.subarray(0, 6000)], [...wire!.words.subarray(0, 13_007)]);
      return 0;
    },
  } as unknown as WiredFunctions;
  const { memoryHints } = wired(addon);
  const numbers = (length: number, first: number) => Array.from({ length }, (_, i) => first + i);
  memoryHints({
    ...{ nodes: 2, types: 1, amounts: numbers(4000, 0), groups: numbers(4000, 0) },
    ...{ reusable: numbers(2000, 4000), must: numbers(9000, 4000), closed: [] },
  });
  const lists = [4000, ...numbers(4000, 0), 9000, ...numbers(9000, 4000), 0];
  expect(seen).toEqual([numbers(6000, 0), [2, 1, 4000, 2000, ...lists]]);
});

describe('a question to the addon', () => {
  const none = words('');
  const owner = { grant: 'a grant', owner: 'this test', replace: false };
  const questions = {
    planMember: {
      ...{ pid: process.pid, process: '', known: '', isAsked: false, unpinned: [], grants: [] },
      ...{ taken: none, pool: none, limit: none, granted: none },
      onlyNarrow: false,
    },
    place: { cpus: [], oneEach: [], granted: none, ...owner },
    schedule: { tid: 0, priority: 0, nice: 0, grant: 'a grant' },
  };
  const parts = Object.entries(questions).flatMap(([name, question]) =>
    Object.keys(question).map((part): [keyof typeof questions, string] => [
      name as keyof typeof questions,
      part,
    ]),
  );

  it.each(parts)('%s without %s is refused, and the error names it', (name, part) => {
    const ask = native[name] as (question: unknown) => unknown;
    const { [part]: _, ...rest } = questions[name] as Record<string, unknown>;
    for (const wrong of [rest, { ...rest, [part]: Symbol('wrong') }]) {
      expect(() => ask(wrong)).toThrow(TypeError);
      expect(() => ask(wrong)).toThrow(new RegExp(`\\b${part}\\b.* must be`));
    }
  });

  it.each(Object.keys(questions) as (keyof typeof questions)[])('%s is one object', (name) => {
    const ask = native[name] as (...parts: unknown[]) => unknown;
    for (const wrong of [undefined, null, 1, 'text']) expect(() => ask(wrong)).toThrow(TypeError);
  });
});
