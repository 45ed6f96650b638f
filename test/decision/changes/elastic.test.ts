// needs: nothing
// The number of CPUs of grants that grow and shrink by themselves.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ElasticBounds,
  type ElasticGrant,
  elasticTargets,
  fairShares,
  spareCpus,
} from '../../../lib/decision/changes/elastic-targets.js';
import { budget } from '../../support/budget.mjs';

const grant = (uid: string, min: number, max: number, weight = 1, cpus = min): ElasticGrant => ({
  ...{ uid, min, max, weight, cpus },
});
const listOf = (shares: ReadonlyMap<string, number> | undefined) => shares && [...shares.values()];
const sum = (numbers: Iterable<number>) => [...numbers].reduce((all, each) => all + each, 0);
const sumOf = (grants: readonly ElasticGrant[], key: 'min' | 'max' | 'cpus') =>
  sum(grants.map((each) => each[key]));

describe('fair shares', () => {
  it.each([
    ['the same for the same weights', [grant('a', 1, 8), grant('b', 1, 8)], 8, [4, 4]],
    ['by weight', [grant('a', 1, 8, 1), grant('b', 1, 8, 3)], 8, [2, 6]],
    ['no more than the most, the rest to others', [grant('a', 1, 2), grant('b', 1, 8)], 8, [2, 6]],
    ['no less than the least', [grant('a', 5, 8), grant('b', 1, 8)], 6, [5, 1]],
    ['CPUs that no grant can take are left', [grant('a', 1, 2), grant('b', 1, 2)], 8, [2, 2]],
    ['the odd one to the heavier', [grant('a', 1, 8, 1), grant('b', 1, 8, 2)], 4, [1, 3]],
    ['the odd one to the lower uid', [grant('b', 1, 8), grant('a', 1, 8)], 3, [1, 2]],
  ])('are %s', (_, grants, total, shares) => {
    expect(listOf(fairShares(grants, total))).toEqual(shares);
  });
});

describe('targets', () => {
  it('take all free CPUs', () => {
    expect(listOf(elasticTargets([grant('a', 2, 8)], { spare: 4 }))).toEqual([6]);
  });

  it('give way to a request, as few as it needs', () => {
    expect(listOf(elasticTargets([grant('a', 2, 8, 1, 8)], { spare: 1, demand: 3 }))).toEqual([6]);
  });

  it('are none if the minimums leave too few for a request', () => {
    const grants = [grant('a', 2, 8, 1, 4), grant('b', 2, 8, 1, 4)];
    expect(elasticTargets(grants, { spare: 0, demand: 5 })).toBeUndefined();
    expect(listOf(elasticTargets(grants, { spare: 0, demand: 4 }))).toEqual([2, 2]);
  });

  it('share with a new grant', () => {
    expect(listOf(elasticTargets([grant('a', 1, 8, 1, 7), grant('b', 1, 8)], { spare: 0 }))).toEqual([4, 4]);
  });

  it('leave a CPU in place that another grant lacks', () => {
    expect(listOf(elasticTargets([grant('a', 1, 8, 1, 5), grant('b', 1, 8, 1, 3)], { spare: 0 }))).toEqual([
      5, 3,
    ]);
    expect(listOf(elasticTargets([grant('a', 1, 8, 1, 5), grant('b', 1, 8, 1, 3)], { spare: 1 }))).toEqual([
      5, 4,
    ]);
  });

  it('take from the grant with most for its weight, and give to the one with least', () => {
    const even = [grant('a', 1, 9, 1, 6), grant('b', 1, 9, 1, 5), grant('c', 1, 9, 1, 3)];
    expect(listOf(elasticTargets(even, { spare: 0, demand: 1 }))).toEqual([5, 5, 3]);
    const uneven = [grant('a', 1, 9, 1, 3), grant('b', 1, 9, 2, 7), grant('c', 1, 9, 1, 5)];
    expect(listOf(elasticTargets(uneven, { spare: 1 }))).toEqual([4, 7, 5]);
  });

  it('return to the current bounds of a grant', () => {
    expect(listOf(elasticTargets([grant('a', 1, 4, 1, 6), grant('b', 1, 8, 1, 3)], { spare: 0 }))).toEqual([
      4, 5,
    ]);
  });

  it('lift a grant that is one below its minimum, even if no CPU is free', () => {
    const grants = [grant('a', 2, 8, 1, 1), grant('b', 1, 2, 1, 2)];
    expect(listOf(elasticTargets(grants, { spare: 0 }))).toEqual([2, 1]);
  });
});

describe('spare CPUs', () => {
  it.each([
    ['all but the last of the pool', { free: 4, shared: 4, mixed: 0 }, 3],
    ['all that are free, beside reserved ones', { free: 4, shared: 5, mixed: 0 }, 4],
    ['without what mixed grants have booked', { free: 4, shared: 5, mixed: 1001 }, 2],
    ['none below zero', { free: 1, shared: 1, mixed: 2500 }, 0],
  ])('are %s', (_, room, spare) => {
    expect(spareCpus(room)).toBe(spare);
  });
});

const bounds = fc
  .record({
    min: fc.integer({ min: 1, max: 6 }),
    more: fc.integer({ min: 0, max: 10 }),
    weight: fc.integer({ min: 1, max: 5 }),
    now: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ min, more, weight, now }) => ({
    min,
    max: min + more,
    weight,
    cpus: min + Math.round(now * more),
  }));
const grantLists = fc
  .array(bounds, { minLength: 1, maxLength: 6 })
  .map((all): ElasticGrant[] => all.map((each, i) => ({ ...each, uid: `grant-${i}` })));
const spares = fc.integer({ min: 0, max: 20 });
const slacks = fc.integer({ min: 0, max: 3 });

function forAll(law: (grants: ElasticGrant[], spare: number, demand: number, slack: number) => void): void {
  fc.assert(fc.property(grantLists, spares, fc.integer({ min: 0, max: 12 }), slacks, law), {
    numRuns: budget({ all: 20_000, usual: 1_000 }),
  });
}

const reached = (grants: readonly ElasticGrant[], shares: ReadonlyMap<string, number>): ElasticGrant[] =>
  grants.map((each) => ({ ...each, cpus: shares.get(each.uid)! }));

describe('targets of any grants', () => {
  it('are at least the minimum and at most the maximum of each', () => {
    forAll((grants, spare, demand, slack) => {
      const targets = elasticTargets(grants, { spare, demand }, slack);
      for (const { uid, min, max } of targets ? grants : []) {
        expect(targets!.get(uid)).toBeGreaterThanOrEqual(min);
        expect(targets!.get(uid)).toBeLessThanOrEqual(max);
      }
    });
  });

  it('leave no CPU over that a grant could take, and take none of those requested', () => {
    forAll((grants, spare, demand, slack) => {
      const total = sumOf(grants, 'cpus') + spare - demand;
      const targets = elasticTargets(grants, { spare, demand }, slack);
      if (total < sumOf(grants, 'min')) expect(targets).toBeUndefined();
      else expect(sum(targets!.values())).toBe(Math.min(total, sumOf(grants, 'max')));
    });
  });

  it('leave no grant more than the slack below its fair share', () => {
    forAll((grants, spare, demand, slack) => {
      const targets = elasticTargets(grants, { spare, demand }, slack);
      if (!targets) return;
      const fair = fairShares(grants, sumOf(grants, 'cpus') + spare - demand);
      for (const { uid } of grants) expect(targets.get(uid)).toBeGreaterThanOrEqual(fair.get(uid)! - slack);
    });
  });

  it('stay the same once they are reached', () => {
    forAll((grants, spare, demand, slack) => {
      const targets = elasticTargets(grants, { spare, demand }, slack);
      if (!targets) return;
      const left = sumOf(grants, 'cpus') + spare - demand - sum(targets.values());
      expect(elasticTargets(reached(grants, targets), { spare: left }, slack)).toEqual(targets);
    });
  });

  it('move no more CPUs than become free or are requested, if no grant lacks more than the slack', () => {
    forAll((grants, spare, demand, slack) => {
      const settled = elasticTargets(grants, { spare }, slack)!;
      const now = reached(grants, settled);
      const total = sumOf(now, 'cpus') - demand;
      const targets = elasticTargets(now, { spare: 0, demand }, slack);
      if (!targets) return;
      const fair = fairShares(now, total);
      if (now.some(({ uid, cpus }) => fair.get(uid)! - cpus > slack)) return;
      const moved = now.map(({ uid, cpus }) => Math.abs(targets.get(uid)! - cpus));
      expect(sum(moved)).toBe(demand);
    });
  });

  it('shrink no grant below its fair share, and grow none above it', () => {
    forAll((grants, spare, demand, slack) => {
      const targets = elasticTargets(grants, { spare, demand }, slack);
      if (!targets) return;
      const fair = fairShares(grants, sumOf(grants, 'cpus') + spare - demand);
      for (const { uid, cpus } of grants) {
        const target = targets.get(uid)!;
        if (target < cpus) expect(target).toBeGreaterThanOrEqual(fair.get(uid)!);
        if (target > cpus) expect(target).toBeLessThanOrEqual(fair.get(uid)!);
      }
    });
  });
});

describe('fair shares of any grants', () => {
  const between = ({ uid, min, max }: ElasticBounds, shares: ReadonlyMap<string, number>) =>
    shares.get(uid)! > min && shares.get(uid)! <= max;

  it('never give a grant fewer if there are more CPUs', () => {
    forAll((grants, spare) => {
      const total = sumOf(grants, 'min') + spare;
      const [before, more] = [fairShares(grants, total), fairShares(grants, total + 1)];
      for (const { uid } of grants) expect(more.get(uid)).toBeGreaterThanOrEqual(before.get(uid)!);
    });
  });

  it('never give a grant fewer if its weight grows', () => {
    forAll((grants, spare) => {
      const total = sumOf(grants, 'min') + spare;
      const [first, ...others] = grants as [ElasticGrant, ...ElasticGrant[]];
      const heavier = fairShares([{ ...first, weight: first.weight + 1 }, ...others], total);
      expect(heavier.get(first.uid)).toBeGreaterThanOrEqual(fairShares(grants, total).get(first.uid)!);
    });
  });

  it('could not raise a lower level with a CPU of a higher one', () => {
    forAll((grants, spare) => {
      const shares = fairShares(grants, sumOf(grants, 'min') + spare);
      const cpusOf = ({ uid }: ElasticBounds) => shares.get(uid)!;
      const rich = grants.filter((each) => between(each, shares));
      const poor = grants.filter((each) => cpusOf(each) < each.max);
      // The level of the giver is then still at or above that of the taker.
      for (const a of rich)
        for (const b of poor) expect((cpusOf(a) - 1) * b.weight).toBeLessThanOrEqual(cpusOf(b) * a.weight);
    });
  });

  it('depend on the grants, and not on their order', () => {
    forAll((grants, spare) => {
      const total = sumOf(grants, 'min') + spare;
      const reversed = fairShares([...grants].reverse(), total);
      for (const { uid } of grants) expect(reversed.get(uid)).toBe(fairShares(grants, total).get(uid));
    });
  });
});

describe('spare CPUs of any machine', () => {
  it('are never the last of the shared pool, nor booked', () => {
    const counts = fc.integer({ min: 0, max: 64 });
    fc.assert(
      fc.property(counts, counts, fc.integer({ min: 0, max: 9999 }), (free, reserved, mixed) => {
        const shared = free + reserved;
        fc.pre(shared > 0);
        const left = free - spareCpus({ free, shared, mixed });
        expect(left + reserved).toBeGreaterThan(0);
        expect(left * 1000).toBeGreaterThanOrEqual(Math.min(mixed, free * 1000));
      }),
    );
  });
});
