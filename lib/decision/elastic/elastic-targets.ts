// Elastic targets: how many CPUs each elastic grant should have. Elastic grants grow and shrink by
// themselves. Pure.
import { MILLI } from '../../input/values/quantity.js';
import { type ElasticBounds, fairShares, isBelow, type Shares } from './fair-shares.js';

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
export const SLACK = 1;

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
