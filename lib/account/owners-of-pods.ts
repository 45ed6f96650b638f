// The owners of the pods on record. Pure.
import type { OwnerRecord, PodAssignment } from './pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';

interface MortalOwners {
  /** By uuid, how many pods are its own. */
  readonly counts: ReadonlyMap<string, number>;
  readonly owners: readonly OwnerRecord[];
}

const NOBODY: MortalOwners = { counts: new Map(), owners: [] };

// The list stays the same as long as the same owners have pods.
function add(before: MortalOwners, pods: readonly PodAssignment[], sign: 1 | -1): MortalOwners {
  // It lives until its grants are released.
  const mortal = pods.flatMap(({ owner }) => (owner.kind === 'persistent' ? [] : [owner]));
  if (mortal.length === 0) return before;
  const counts = new Map(before.counts);
  const news: OwnerRecord[] = [];
  let haveEnded = false;
  for (const owner of mortal) {
    const known = counts.get(owner.uuid);
    const count = (known ?? 0) + sign;
    if (known === undefined) news.push(owner);
    if (count === 0) haveEnded = counts.delete(owner.uuid);
    else counts.set(owner.uuid, count);
  }
  const left = haveEnded ? before.owners.filter(({ uuid }) => counts.has(uuid)) : before.owners;
  return { counts, owners: news.length === 0 ? left : [...left, ...news] };
}

const mortalOwnersOf = oncePerPods<MortalOwners>(
  (pods) => add(NOBODY, pods, 1),
  // One that has some still is never without any.
  (earlier, changes) => add(add(earlier, podsAfter(changes), 1), podsBefore(changes), -1),
);

/** The owners that can die: each process and each cgroup once. */
export const mortalOwners = (pods: readonly PodAssignment[]): readonly OwnerRecord[] =>
  mortalOwnersOf(pods).owners;

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
export function podsOf(
  pods: readonly PodAssignment[],
  owners: readonly Pick<OwnerRecord, 'uuid'>[],
): PodAssignment[] {
  if (owners.length === 0) return [];
  const uuids = new Set(owners.map(({ uuid }) => uuid));
  return pods.filter(({ owner }) => uuids.has(owner.uuid));
}
