// Fair shares: whole CPUs among grants that take between a least and a most number of them, by weighted
// max-min fairness. Pure.

/** A grant that may have any number of CPUs from `min` to `max`. */
export interface ElasticBounds {
  readonly uid: string;
  readonly min: number;
  readonly max: number;
  /** Above 0. Of two grants between their bounds one of twice the weight has twice as many. */
  readonly weight: number;
}

/** CPUs by the uid of a grant. */
export type Shares = ReadonlyMap<string, number>;

/**
 * Who is at the lowest level is filled first: has the fewest CPUs for its weight; of several the
 * heavier, then the lower uid.
 */
export function isBelow(a: ElasticBounds, cpusOfA: number, b: ElasticBounds, cpusOfB: number): boolean {
  const difference = cpusOfA * b.weight - cpusOfB * a.weight;
  if (difference !== 0) return difference < 0;
  return a.weight !== b.weight ? a.weight > b.weight : a.uid < b.uid;
}

/**
 * `total` CPUs, or as many as all can take, are poured in one by one: everybody has its least, and
 * each more goes to the lowest level that is not full. So with one CPU more nobody has less.
 * REQUIRES: `total` is at least the sum of all `min`.
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
