// Fair shares: distributes whole CPUs to grants with a minimum and a maximum, by weighted max-min
// fairness. Pure.

/** A grant that may have any number of CPUs from `min` to `max`. */
export interface ElasticBounds {
  readonly uid: string;
  readonly min: number;
  readonly max: number;
  /** Above 0. Between its bounds, a grant of twice the weight has twice as many CPUs. */
  readonly weight: number;
}

/** CPUs by the uid of a grant. */
export type Shares = ReadonlyMap<string, number>;

/**
 * True if grant `a` is at a lower level than `b`, and so gets a CPU first: it has fewer CPUs for
 * its weight. If equal, the heavier grant comes first, then the lower uid.
 */
export function isBelow(a: ElasticBounds, cpusOfA: number, b: ElasticBounds, cpusOfB: number): boolean {
  const difference = cpusOfA * b.weight - cpusOfB * a.weight;
  if (difference !== 0) return difference < 0;
  return a.weight !== b.weight ? a.weight > b.weight : a.uid < b.uid;
}

/**
 * Distributes `total` CPUs, or as many as the grants can take. Each grant has its `min`; each
 * further CPU goes to the grant at the lowest level below its `max`. So with one more CPU, no grant
 * has less. REQUIRES: `total` is at least the sum of all `min`.
 */
export function fairShares<G extends ElasticBounds>(grants: readonly G[], total: number): Shares {
  const shares = new Map(grants.map(({ uid, min }) => [uid, min]));
  const open = grants.filter(({ min, max }) => min < max);
  let left = total - grants.reduce((sum, { min }) => sum + min, 0);
  for (; left > 0 && open.length > 0; left--) {
    let lowest = 0;
    for (let i = 1; i < open.length; i++) {
      const [a, b] = [open[i]!, open[lowest]!];
      if (isBelow(a, shares.get(a.uid)!, b, shares.get(b.uid)!)) lowest = i;
    }
    const { uid, max } = open[lowest]!;
    const cpus = shares.get(uid)! + 1;
    shares.set(uid, cpus);
    if (cpus === max) open.splice(lowest, 1);
  }
  return shares;
}
