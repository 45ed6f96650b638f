// Elastic targets: how many CPUs grants that grow and shrink by themselves are to have. Pure.
import { MILLI } from '../../input/values/quantity.js';
import { type ElasticBounds, fairShares, isBelow, type Shares } from './fair-shares.js';

/** An elastic grant, as it is now. */
export interface ElasticGrant extends ElasticBounds {
  readonly cpus: number;
}

/** What there is for elastic grants beside what they have. */
export interface ElasticRoom {
  /** See {@link spareCpus}. */
  readonly spare: number;
  /** How many CPUs a request needs beside those that are free. */
  readonly asked?: number;
}

/**
 * How many CPUs a grant may be below its fair share before others give it some of theirs. Between
 * whole CPUs nothing is exact: without it, CPUs would move at each change for the sake of one.
 */
export const SLACK = 1;

/**
 * Free CPUs that grants may take: the shared pool keeps one, and what mixed grants have booked of
 * it. `shared`: all CPUs that it has, those that are reserved too.
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
 * How many CPUs each is to have; undefined where even the least of all leave too few for what is
 * asked: then nobody gives anything up in vain.
 *
 * The fair shares are {@link fairShares} of all that elastic grants can have. Nobody who has less than
 * its share shrinks, and nobody who has more grows. Where somebody lacks more than `slack`, everybody
 * gets its share; else only as many CPUs change hands as have come or are asked for. So nothing is
 * left over that somebody could take, everybody has its least, and who is asked again on what was
 * answered answers the same.
 */
export function elasticTargets(
  grants: readonly ElasticGrant[],
  { spare, asked = 0 }: ElasticRoom,
  slack = SLACK,
): Shares | undefined {
  const sumOf = (numberOf: (grant: ElasticGrant) => number) =>
    grants.reduce((sum, grant) => sum + numberOf(grant), 0);
  const total = sumOf(({ cpus }) => cpus) + spare - asked;
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

// From what they have towards their fair shares, as few steps as make the sum.
function nearest(grants: readonly ElasticGrant[], fair: Shares, total: number): Shares {
  const targets = new Map(grants.map(({ uid, cpus }) => [uid, cpus]));
  const cpusOf = ({ uid }: ElasticGrant) => targets.get(uid)!;
  const change = total - grants.reduce((sum, { cpus }) => sum + cpus, 0);
  const step = Math.sign(change);
  const isOnItsWay = (grant: ElasticGrant) => (fair.get(grant.uid)! - cpusOf(grant)) * step > 0;
  // The lowest grows, the highest shrinks.
  const isFirst = (a: ElasticGrant, b: ElasticGrant) =>
    step > 0 ? isBelow(a, cpusOf(a), b, cpusOf(b)) : isBelow(b, cpusOf(b), a, cpusOf(a));
  for (let left = Math.abs(change); left > 0; left--) {
    const first = grants.filter(isOnItsWay).reduce((best, each) => (isFirst(each, best) ? each : best));
    targets.set(first.uid, cpusOf(first) + step);
  }
  return targets;
}
