import { expect, it, vi } from 'vitest';
import { type WiredFunctions, wired } from '../lib/base/wire.js';
import { discover } from '../lib/entries/topology.js';
import { CpuSet } from '../lib/index.js';

const words = (list: string) => CpuSet.parse(list).words;

it('is one for all who evaluate the module in an environment', async () => {
  const first = (await import('../lib/base/native.js')).native;
  vi.resetModules();
  const second = (await import('../lib/base/native.js')).native;
  expect(second).not.toBe(first);
  const { handle } = await discover({ synthetic: 'core:16 pu:1' });
  second.wholeCores(handle, words('0-3'));
  const taken = first.bestFit(handle, words('12-15'), 2, false, false, false, 1, false);
  expect(String(new CpuSet(taken))).toBe('12-13');
});

it('keeps what is on it when it grows', () => {
  let wire: { words: Uint32Array; amounts: Float64Array } | undefined;
  const seen: number[][] = [];
  const addon = {
    setWire: (list: Uint32Array, amounts: Float64Array) => {
      wire = { words: list, amounts };
    },
    memoryHints: (
      _nodes: number,
      _types: number,
      first: number,
      second: number,
      groups: number,
      must: number,
    ) => {
      seen.push([...wire!.amounts.subarray(0, first + second)], [...wire!.words.subarray(0, groups + must)]);
      return 0;
    },
  } as unknown as WiredFunctions;
  const { memoryHints } = wired(addon);
  const numbers = (length: number, first: number) => Array.from({ length }, (_, i) => first + i);
  memoryHints(2, 1, numbers(4000, 0), numbers(4000, 0), numbers(2000, 4000), numbers(9000, 4000));
  expect(seen).toEqual([numbers(6000, 0), numbers(13_000, 0)]);
});
