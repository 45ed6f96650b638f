// The owners of the pods on record. Pure.
import type { OwnerRecord, PodAssignment } from './pod-assignment.js';
import { podsAfter, podsBefore } from './pod-list-changes.js';
import { oncePerPods } from './pod-summary.js';

/** An owner, and how many pods are its own. */
interface OwnerShare {
  readonly owner: OwnerRecord;
  readonly pods: number;
}

type OwnerShares = ReadonlyMap<string, OwnerShare>;

function add(shares: OwnerShares, pods: readonly PodAssignment[], sign: 1 | -1): OwnerShares {
  let all: Map<string, OwnerShare> | undefined;
  for (const { owner } of pods) {
    // It lives until its grants are released.
    if (owner.kind === 'persistent') continue;
    all ??= new Map(shares);
    const count = (all.get(owner.uuid)?.pods ?? 0) + sign;
    if (count === 0) all.delete(owner.uuid);
    else all.set(owner.uuid, { owner, pods: count });
  }
  return all ?? shares;
}

const sharesOf = oncePerPods<OwnerShares>(
  (pods) => add(new Map(), pods, 1),
  (earlier, changes) => add(add(earlier, podsBefore(changes), -1), podsAfter(changes), 1),
);

// By the shares of a list of pods: many lists have the same.
const ownersOfShares = new WeakMap<OwnerShares, readonly OwnerRecord[]>();

/** The owners that can die: each process and each cgroup once. */
export function mortalOwners(pods: readonly PodAssignment[]): readonly OwnerRecord[] {
  const shares = sharesOf(pods);
  let owners = ownersOfShares.get(shares);
  if (!owners) {
    owners = Array.from(shares.values(), ({ owner }) => owner);
    ownersOfShares.set(shares, owners);
  }
  return owners;
}

/**
 * The pods of dead owners, which the owner before has left. `isProcessAlive`: of the process with
 * this file.
 */
export function podsOfDead(
  pods: readonly PodAssignment[],
  dead: readonly OwnerRecord[],
  isProcessAlive: (uuid: string) => boolean,
): PodAssignment[] {
  return podsOf(pods, dead).filter(({ formerOwner }) => formerOwner === null || !isProcessAlive(formerOwner));
}

/** Those of the pods that some owners have. */
export function podsOf(pods: readonly PodAssignment[], owners: readonly OwnerRecord[]): PodAssignment[] {
  if (owners.length === 0) return [];
  const uuids = new Set(owners.map(({ uuid }) => uuid));
  return pods.filter(({ owner }) => uuids.has(owner.uuid));
}
