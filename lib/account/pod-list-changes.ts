// What is different between two lists of pods. Pods never change, so that the same object is the
// same pod. Pure.
import type { PodAssignment } from './pod-assignment.js';

/**
 * The steps from one list of pods to another: the removed ones leave, the changed ones are replaced
 * where they are, the added ones come last. A pod that has only another place is removed and added.
 */
export interface PodListChanges {
  readonly removed: readonly PodAssignment[];
  readonly changed: readonly { readonly before: PodAssignment; readonly after: PodAssignment }[];
  readonly added: readonly PodAssignment[];
}

type Pods = readonly PodAssignment[];

// Each commit asks several times for the same two. By the later list, and held weakly.
const known = new WeakMap<Pods, { readonly before: WeakRef<Pods>; readonly changes: PodListChanges }>();

/**
 * One pass over both lists, which compares references where nothing has changed. No list has a pod
 * twice.
 */
export function podListChanges(before: Pods, after: Pods): PodListChanges {
  const last = known.get(after);
  if (last?.before.deref() === before) return last.changes;
  const changes = compare(before, after);
  known.set(after, { before: new WeakRef(before), changes });
  return changes;
}

function compare(before: Pods, after: Pods): PodListChanges {
  const removed: PodAssignment[] = [];
  const changed: { before: PodAssignment; after: PodAssignment }[] = [];
  let next = 0;
  for (let i = 0; i < before.length; i++) {
    const old = before[i]!;
    const now = after[next];
    if (now === old) next++;
    else if (now?.uid === old.uid) {
      changed.push({ before: old, after: now });
      next++;
    } else removed.push(old);
  }
  return { removed, changed, added: after.slice(next) };
}

/** The pods that are not in the second list as they are in the first. */
export const podsBefore = ({ removed, changed }: PodListChanges): readonly PodAssignment[] =>
  changed.length === 0 ? removed : [...removed, ...changed.map(({ before }) => before)];

/** The pods that are not in the first list as they are in the second. */
export const podsAfter = ({ added, changed }: PodListChanges): readonly PodAssignment[] =>
  changed.length === 0 ? added : [...changed.map(({ after }) => after), ...added];

/**
 * The pods of two lists, each once; one that has changed as it is in either. Those of the first list
 * alone come last: so the changes from either list are few.
 */
export function podsOfBoth(before: Pods, after: Pods): Pods {
  const former = podsBefore(podListChanges(before, after));
  return former.length === 0 ? after : [...new Set([...after, ...former])];
}
