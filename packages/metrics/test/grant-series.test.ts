// needs: agents
// The series of grants, over scrapes between which grants come, go and run.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrantSeries, OTHER, type Series } from '../lib/grants/grant-series.js';

type Shown = readonly Series<'runs', 'size'>[];

const grant = (uid: string, label: string, runs: number | null, size: number | null = 1) => ({
  uid,
  label,
  counters: { runs },
  gauges: { size },
});

const runsOf = (shown: Shown) =>
  Object.fromEntries(shown.map((each) => [each.label, each.counters.get('runs')]));

describe('GrantSeries', () => {
  it('continues if a grant ends and another one with its name comes', () => {
    const series = new GrantSeries<'runs', 'size'>(10);
    series.next([grant('1', 'gateway', 0)]);
    expect(runsOf(series.next([grant('1', 'gateway', 7)]))).toEqual({ gateway: 7 });
    expect(runsOf(series.next([grant('2', 'gateway', 0)]))).toEqual({ gateway: 7 });
    expect(runsOf(series.next([grant('2', 'gateway', 2)]))).toEqual({ gateway: 9 });
    expect(runsOf(series.next([]))).toEqual({});
    expect(runsOf(series.next([grant('3', 'gateway', 0)]))).toEqual({ gateway: 9 });
    expect(runsOf(series.next([grant('3', 'gateway', 4)]))).toEqual({ gateway: 13 });
  });

  it('keeps the counters of the last 1,000 labels that ended, and no more', () => {
    const series = new GrantSeries<'runs', 'size'>(2000);
    const names = Array.from({ length: 1001 }, (_, i) => `name ${i}`);
    for (const name of names) series.next([grant(name, name, 5)]);
    series.next([grant('first', 'name 0', 0)]);
    series.next([]);
    // Of the 1,001 before it name 1 is the oldest.
    const shown = series.next([grant('second', 'name 1', 0), grant('third', 'name 2', 0)]);
    expect(runsOf(shown)).toEqual({ 'name 1': 0, 'name 2': 5 });
  });

  it('gives a grant its own series once there is room, and leaves its past to the common one', () => {
    const series = new GrantSeries<'runs', 'size'>(1);
    series.next([grant('1', 'a', 0), grant('2', 'b', 0)]);
    expect(runsOf(series.next([grant('1', 'a', 3), grant('2', 'b', 5)]))).toEqual({ a: 3, other: 5 });
    expect(series.labelOf('2')).toBeUndefined();
    expect(runsOf(series.next([grant('2', 'b', 6)]))).toEqual({ b: 1, other: 5 });
    expect(series.labelOf('2')).toBe('b');
  });

  it('shows known values, and no unknown ones', () => {
    const series = new GrantSeries<'runs', 'size'>(10);
    expect(runsOf(series.next([grant('1', 'a', null)]))).toEqual({ a: undefined });
    series.next([grant('1', 'a', 2)]);
    // It stays as it was while it cannot be read.
    expect(runsOf(series.next([grant('1', 'a', null)]))).toEqual({ a: 2 });
    expect(runsOf(series.next([grant('1', 'a', 5)]))).toEqual({ a: 5 });
  });

  it('does not fall if the figures of a grant begin again', () => {
    const series = new GrantSeries<'runs', 'size'>(10);
    series.next([grant('1', 'a', 0)]);
    series.next([grant('1', 'a', 9)]);
    expect(runsOf(series.next([grant('1', 'a', 2)]))).toEqual({ a: 9 });
    expect(runsOf(series.next([grant('1', 'a', 5)]))).toEqual({ a: 12 });
  });

  it('keeps a grant of the common label’s name apart', () => {
    const series = new GrantSeries<'runs', 'size'>(1);
    const shown = series.next([grant('1', OTHER, 1), grant('2', 'b', 2)]);
    expect(runsOf(shown)).toEqual({ 1: 1, other: 2 });
  });

  it('never falls, loses no work of living grants, and keeps to its limit of series', () => {
    // What each of six grants does until the next scrape; undefined: it is not there.
    const scrape = fc.array(fc.option(fc.nat(5), { nil: undefined }), { minLength: 6, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(scrape, { maxLength: 30 }), fc.integer({ min: 0, max: 4 }), (scrapes, max) => {
        const series = new GrantSeries<'runs', 'size'>(max);
        const done = new Map<string, number>();
        // The third grant of a name comes as a new one each time.
        const lives = Array(6).fill(0) as number[];
        const earlier = new Map<string, number>();
        for (const amounts of scrapes) {
          const present = amounts.flatMap((amount, i) => {
            const uid = `${i} ${lives[i]}`;
            if (amount === undefined) {
              done.delete(uid);
              lives[i]!++;
              return [];
            }
            done.set(uid, (done.get(uid) ?? 0) + amount);
            // Two grants of each name.
            return [grant(uid, `name ${i >> 1}`, done.get(uid)!)];
          });
          const shown = series.next(present);
          const own = shown.filter(({ label }) => label !== OTHER);
          expect(own.length).toBeLessThanOrEqual(max);
          expect(new Set(shown.map(({ label }) => label)).size).toBe(shown.length);
          const grown = shown.map(({ label, counters }) => counters.get('runs')! - (earlier.get(label) ?? 0));
          expect(Math.min(0, ...grown)).toBe(0);
          const all = amounts.reduce<number>((sum, amount) => sum + (amount ?? 0), 0);
          expect(grown.reduce((sum, each) => sum + each, 0)).toBe(all);
          const sizes = shown.map(({ gauges }) => gauges.get('size') ?? 0);
          expect(sizes.reduce((sum, each) => sum + each, 0)).toBe(present.length);
          for (const { label, counters } of shown) earlier.set(label, counters.get('runs')!);
        }
      }),
    );
  });
});
