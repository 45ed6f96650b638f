// What holds for elastic grants at all times, and once they have settled.
import { expect } from 'vitest';
import { elasticTargets } from '../../lib/decision/changes/elastic-targets.js';
import { CpuSet, type Manager } from '../../lib/index.js';
import { changed } from './changed.js';

export function expectRanges(manager: Manager): void {
  let seen = CpuSet.EMPTY;
  for (const { cpus, elastic } of manager.grants()) {
    expect(cpus.intersects(seen)).toBe(false);
    seen = seen.union(cpus);
    if (!elastic) continue;
    expect(cpus.size).toBeGreaterThanOrEqual(elastic.min);
    expect(cpus.size).toBeLessThanOrEqual(elastic.max);
  }
  expect(manager.sharedPool().isEmpty).toBe(false);
}

/** True if every grant has its target, and no CPU is left that one could take. */
function isAtTargets(manager: Manager): boolean {
  const all = manager.grants();
  if (all.some(({ upcoming, alive }) => upcoming !== null || !alive)) return false;
  const grants = all.flatMap(({ uid, cpus, elastic }) =>
    elastic ? [{ uid, ...elastic, cpus: cpus.size }] : [],
  );
  const targets = elasticTargets(grants, { spare: manager.sharedPool().size - 1 });
  return grants.every(({ uid, cpus }) => targets?.get(uid) === cpus);
}

/** Resolves once they have settled. */
export const restOfRanges = (manager: Manager): Promise<void> =>
  changed(manager, () => {
    expectRanges(manager);
    return isAtTargets(manager);
  });
