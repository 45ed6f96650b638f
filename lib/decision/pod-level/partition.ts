// Partition: what is booked for several that run together, dealt out among them. Exclusive ones get
// their own; all others share the rest. Knows neither pods nor processes. Pure.
import type { CpuSet } from '../../machine/cpu-set.js';

/** One that gets a part. */
export interface Claim {
  /** An `init` ends before what comes after it starts: it takes nothing from others. */
  readonly kind: 'init' | 'sidecar' | 'app';
  /** What it has alone; null: it shares. */
  readonly amount: number | null;
}

/**
 * What each has of so much: its own amount, or what those that run beside it leave. An `init` that
 * shares has what the sidecars before it leave.
 */
export function sharesOf(total: number, claims: readonly Claim[]): readonly number[] {
  const rest = claims.reduce((left, { kind, amount }) => left - (kind === 'init' ? 0 : (amount ?? 0)), total);
  let beside = total;
  return claims.map(({ kind, amount }) => {
    const share = amount ?? (kind === 'init' ? beside : rest);
    if (kind === 'sidecar') beside -= amount ?? 0;
    return share;
  });
}

/** The first for which nothing, or less than it is to have alone, is left; -1: there is none. */
export function firstUnmet(total: number, claims: readonly Claim[]): number {
  const shares = sharesOf(total, claims);
  let left = total;
  return claims.findIndex(({ kind, amount }, i) => {
    if (amount === null) return shares[i]! <= 0;
    const isUnmet = amount > left;
    if (kind !== 'init') left -= amount;
    return isUnmet;
  });
}

/** CPUs that are dealt out. */
export interface Partition {
  /** What each runs on. */
  readonly parts: readonly CpuSet[];
  /** What is nobody's own: those that share run there together. */
  readonly pool: CpuSet;
}

/**
 * Deals out CPUs, in the order of the claims, sidecars before apps: nobody has what a sidecar before
 * it has. `take`: chooses so many of some, for the claim at an index; throws where it cannot.
 */
export function partitionOf(
  all: CpuSet,
  claims: readonly Claim[],
  take: (from: CpuSet, count: number, at: number) => CpuSet,
): Partition {
  let left = all;
  const own = claims.map(({ kind, amount }, i) => {
    if (amount === null) return kind === 'init' ? left : undefined;
    const cpus = take(left, amount, i);
    if (kind !== 'init') left = left.difference(cpus);
    return cpus;
  });
  return { parts: own.map((cpus) => cpus ?? left), pool: left };
}
