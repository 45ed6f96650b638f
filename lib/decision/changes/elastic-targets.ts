// Elastic targets: how many CPUs each elastic grant should have, by weighted max-min fairness.
// Elastic grants grow and shrink by themselves. Pure.
import type { Elasticity } from '../../account/pod-assignment.js';
import { MILLI } from '../../input/values/quantity.js';

/** A grant that may have any number of CPUs from `min` to `max`. */
export interface ElasticBounds extends Elasticity {
  readonly uid: string;
}

/** CPUs by the uid of a grant. */
export type Shares = ReadonlyMap<string, number>;

/**
 * True if grant `a` is at a lower level than `b`, and so gets a CPU first: it has fewer CPUs for
 * its weight. If equal, the heavier grant comes first, then the lower uid.
 */
function isBelow(a: ElasticBounds, cpusOfA: number, b: ElasticBounds, cpusOfB: number): boolean {
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

/** An elastic grant with its present number of CPUs. */
export interface ElasticGrant extends ElasticBounds {
  readonly cpus: number;
}

/** The CPUs for elastic grants beside those that they have. */
export interface ElasticRoom {
  /** See {@link spareCpus}. */
  readonly spare: number;
  /** The number of CPUs that a request needs beside the free ones. */
  readonly demand?: number;
}

/**
 * How many CPUs a grant may be below its fair share before others give it some of theirs. Fair
 * shares are rounded to whole CPUs: without slack, every change would move CPUs between grants.
 */
const SLACK = 1;

/**
 * The number of free CPUs that elastic grants may take. The shared pool keeps one CPU, and what
 * mixed grants have booked. `shared`: all CPUs of the shared pool, including reserved ones.
 */
export function spareCpus({
  free,
  shared,
  mixed,
}: {
  readonly free: number;
  readonly shared: number;
  /** In millicores. */
  readonly mixed: number;
}): number {
  return Math.max(Math.min(free - Math.ceil(mixed / MILLI), shared - 1), 0);
}

/**
 * The number of CPUs that each grant should have. Undefined if all grants at their `min` would
 * still leave too few CPUs for the request, so that no grant shrinks in vain.
 *
 * Fair shares are {@link fairShares} of all CPUs that elastic grants can have. A grant below its
 * share never shrinks, and a grant above its share never grows. If a grant is below its share by
 * more than `slack`, every grant gets its share. Otherwise, only as many CPUs change hands as
 * became free or are requested. So no usable CPU is left over, every grant has its `min`, and
 * applying the targets and asking again changes nothing.
 */
export function elasticTargets(
  grants: readonly ElasticGrant[],
  { spare, demand = 0 }: ElasticRoom,
  slack = SLACK,
): Shares | undefined {
  const sumOf = (numberOf: (grant: ElasticGrant) => number) =>
    grants.reduce((sum, grant) => sum + numberOf(grant), 0);
  const total = sumOf(({ cpus }) => cpus) + spare - demand;
  if (total < sumOf(({ min }) => min)) return undefined;
  const fair = fairShares(grants, total);
  const isOutOfBounds = ({ cpus, min, max }: ElasticGrant) => cpus < min || cpus > max;
  const lacks = (grant: ElasticGrant) => fair.get(grant.uid)! - grant.cpus > slack;
  if (grants.some((grant) => isOutOfBounds(grant) || lacks(grant))) return fair;
  return nearest(
    grants,
    fair,
    Math.min(
      total,
      sumOf(({ max }) => max),
    ),
  );
}

// Moves grants from their sizes towards their fair shares, only until the sum is `total`.
function nearest(grants: readonly ElasticGrant[], fair: Shares, total: number): Shares {
  const targets = new Map(grants.map(({ uid, cpus }) => [uid, cpus]));
  const cpusOf = ({ uid }: ElasticGrant) => targets.get(uid)!;
  const change = total - grants.reduce((sum, { cpus }) => sum + cpus, 0);
  const step = Math.sign(change);
  const isOnItsWay = (grant: ElasticGrant) => (fair.get(grant.uid)! - cpusOf(grant)) * step > 0;
  // The grant at the lowest level grows first; the one at the highest shrinks first.
  const isFirst = (a: ElasticGrant, b: ElasticGrant) =>
    step > 0 ? isBelow(a, cpusOf(a), b, cpusOf(b)) : isBelow(b, cpusOf(b), a, cpusOf(a));
  for (let left = Math.abs(change); left > 0; left--) {
    const first = grants.filter(isOnItsWay).reduce((best, each) => (isFirst(each, best) ? each : best));
    targets.set(first.uid, cpusOf(first) + step);
  }
  return targets;
}
