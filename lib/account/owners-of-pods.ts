// The owners of the pods on record. Pure.
import type { OwnerRecord, PodAssignment } from './pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';

interface MortalOwners {
  /** The number of pods by owner uuid. */
  readonly counts: ReadonlyMap<string, number>;
  readonly owners: readonly OwnerRecord[];
}

const NO_OWNERS: MortalOwners = { counts: new Map(), owners: [] };

// Returns the same list while the same owners have pods.
function add(before: MortalOwners, pods: readonly PodAssignment[], sign: 1 | -1): MortalOwners {
  // A persistent owner lives until its grants are released.
  const mortal = pods.flatMap(({ owner }) => (owner.kind === 'persistent' ? [] : [owner]));
  if (mortal.length === 0) return before;
  const counts = new Map(before.counts);
  const added: OwnerRecord[] = [];
  let haveEnded = false;
  for (const owner of mortal) {
    const pods = counts.get(owner.uuid);
    const count = (pods ?? 0) + sign;
    if (pods === undefined) added.push(owner);
    if (count === 0) haveEnded = counts.delete(owner.uuid);
    else counts.set(owner.uuid, count);
  }
  const left = haveEnded ? before.owners.filter(({ uuid }) => counts.has(uuid)) : before.owners;
  return { counts, owners: added.length === 0 ? left : [...left, ...added] };
}

const mortalOwnersOf = oncePerPods<MortalOwners>(
  (pods) => add(NO_OWNERS, pods, 1),
  // Adds first, so that an owner that keeps some pods never drops to zero in between.
  (earlier, changes) => add(add(earlier, podsAfter(changes), 1), podsBefore(changes), -1),
);

/** The owners that can die: each process and each cgroup once. */
export const mortalOwners = (pods: readonly PodAssignment[]): readonly OwnerRecord[] =>
  mortalOwnersOf(pods).owners;

/**
 * The pods of dead owners whose former owner has left too. `isProcessAlive`: true if the process
 * with this file lives.
 */
export function podsOfDead(
  pods: readonly PodAssignment[],
  dead: readonly OwnerRecord[],
  isProcessAlive: (uuid: string) => boolean,
): PodAssignment[] {
  return podsOf(pods, dead).filter(({ formerOwner }) => formerOwner === null || !isProcessAlive(formerOwner));
}

/** The pods that belong to some owners. */
export function podsOf(
  pods: readonly PodAssignment[],
  owners: readonly Pick<OwnerRecord, 'uuid'>[],
): PodAssignment[] {
  if (owners.length === 0) return [];
  const uuids = new Set(owners.map(({ uuid }) => uuid));
  return pods.filter(({ owner }) => uuids.has(owner.uuid));
}
