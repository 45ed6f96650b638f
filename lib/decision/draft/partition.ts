// Partition: deals out what is booked to several claims. Exclusive claims get their own part; all
// others share the rest. Knows neither pods nor processes. Pure.
import type { Placement } from '../../input/placement.js';
import { requestOf } from '../../input/pods/pod-request.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { CpuSet } from '../../machine/cpu-set.js';

/** True if a pod is booked once for all of its containers. */
export function isBookedWhole(
  { resources }: Pick<PodRequest, 'resources'>,
  { scope, topologyPolicy }: Placement,
): boolean {
  return resources?.isManaged === true && scope === 'pod' && topologyPolicy !== 'none';
}

/**
 * True if the managers allocate for this container. With pod-level resources, only containers whose
 * CPU and memory limits equal their requests are exclusive; all others share.
 */
export function isExclusive({ resources }: PodRequest, { name }: ContainerRequest): boolean {
  return !resources || (resources.isManaged && resources.guaranteed.includes(name));
}

/** The pod-level request for a resource. */
export function podAmount({ resources }: PodRequest, resource: string): number {
  return resources ? requestOf(resources, resource) : 0;
}

/** A claim to a part. */
export interface Claim {
  /** An `init` ends before later ones start, so it takes nothing from them. */
  readonly kind: 'init' | 'sidecar' | 'app';
  /** The exclusive amount; null if it shares. */
  readonly amount: number | null;
}

/**
 * The amount of each claim: its own, or what those beside it leave. An `init` that shares has what
 * the sidecars before it leave.
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

/**
 * The index of the first claim for which nothing, or less than its amount, is left; -1 if all are
 * met.
 */
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

/** The CPUs dealt to claims. */
export interface Partition {
  /** The CPUs of each claim. */
  readonly parts: readonly CpuSet[];
  /** The CPUs of no exclusive claim, which the others share. */
  readonly pool: CpuSet;
}

/**
 * Deals out CPUs in the order of the claims, sidecars before apps. No claim gets CPUs of a sidecar
 * before it. `take`: chooses `count` CPUs of `from` for the claim at an index, or throws.
 */
export function partitionOf(
  all: CpuSet,
  claims: readonly Claim[],
  take: (from: CpuSet, count: number, at: number) => CpuSet,
): Partition {
  let left = all;
  const parts = claims.map(({ kind, amount }, i) => {
    if (amount === null) return kind === 'init' ? left : undefined;
    const cpus = take(left, amount, i);
    if (kind !== 'init') left = left.difference(cpus);
    return cpus;
  });
  return { parts: parts.map((cpus) => cpus ?? left), pool: left };
}
