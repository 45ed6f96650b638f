// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CpuSet, NodeSet, NumalignError } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';

const ids = fc.uniqueArray(fc.integer({ min: 0, max: 700 }));
const sorted = (list: Iterable<number>) => [...list].sort((a, b) => a - b);
const codeOf = (action: () => unknown) => {
  try {
    action();
  } catch (error) {
    return (error as NumalignError).code;
  }
  return undefined;
};

describe('CpuSet', () => {
  it('holds exactly its given ids, in ascending order', () => {
    fc.assert(
      fc.property(ids, (list) => {
        const set = CpuSet.from(list);
        expect(set.toArray()).toEqual(sorted(list));
        expect(set.size).toBe(list.length);
        expect(set.isEmpty).toBe(list.length === 0);
        expect(set.first).toBe(sorted(list)[0]);
      }),
    );
  });

  it('obeys the algebra of sets', () => {
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        const [x, y] = [CpuSet.from(a), CpuSet.from(b)];
        expect(x.union(y).toArray()).toEqual(sorted(new Set([...a, ...b])));
        expect(x.intersection(y).toArray()).toEqual(sorted(a.filter((id) => b.includes(id))));
        expect(x.difference(y).toArray()).toEqual(sorted(a.filter((id) => !b.includes(id))));
        expect(x.isSubsetOf(y)).toBe(a.every((id) => b.includes(id)));
        expect(x.intersects(y)).toBe(a.some((id) => b.includes(id)));
        expect(x.equals(y)).toBe(x.isSubsetOf(y) && y.isSubsetOf(x));
        expect(x.union(y).difference(y).union(x.intersection(y)).equals(x)).toBe(true);
      }),
    );
  });

  it('prints the list form that it parses back', () => {
    fc.assert(
      fc.property(ids, (list) => {
        const set = CpuSet.from(list);
        expect(CpuSet.parse(set.toString()).equals(set)).toBe(true);
      }),
    );
  });

  it('reads any text either as a set or as ERR_INVALID_LIST', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9,+ -]*$/), fc.string({ unit: 'binary' }));
    fc.assert(
      fc.property(text, (list) => {
        const code = codeOf(() => CpuSet.parse(list));
        expect([undefined, 'ERR_INVALID_LIST']).toContain(code);
        if (code === undefined) expect(list).toMatch(/^[0-9,+-]*$/);
      }),
      { numRuns: budget({ all: 2_000, usual: 200 }) },
    );
  });

  it('names the offending part of a malformed list', () => {
    expect(() => CpuSet.parse('0-3,7-2')).toThrow(/"7-2" is neither an id nor an ascending range/);
    expect(() => CpuSet.parse('0-65536')).toThrow(NumalignError);
    expect(codeOf(() => CpuSet.parse('0-65536'))).toBe('ERR_INVALID_LIST');
  });

  it('holds the greatest ids that Linux could give', () => {
    expect(CpuSet.parse('16383,65535').toArray()).toEqual([16_383, 65_535]);
    expect(NodeSet.parse('1023').toArray()).toEqual([1023]);
    expect(codeOf(() => NodeSet.parse('1024'))).toBe('ERR_INVALID_LIST');
  });

  it('refuses invalid ids', () => {
    for (const id of [-1, 0.5, Number.NaN, 65_536, '1' as unknown as number]) {
      expect(
        codeOf(() => CpuSet.of(id)),
        String(id),
      ).toBe('ERR_INVALID_ARGUMENT');
    }
  });

  it('is not changed by sets that are made from it', () => {
    const set = CpuSet.parse('0-3');
    set.union(CpuSet.of(9));
    set.difference(CpuSet.of(0));
    expect(set.toString()).toBe('0-3');
  });
});
