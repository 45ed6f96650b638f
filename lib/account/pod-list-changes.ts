// What is different between two lists of pods, and what is worked out once for each list. Pods never
// change, so that the same object is the same pod. Pure.
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

// ---- once for each list

// The lists that were asked about last, the latest first. Held weakly: a state that is not in use
// any more is not kept.
const recent: WeakRef<Pods>[] = [];
const MOST_RECENT = 4;

function note(pods: Pods): void {
  if (recent[0]?.deref() === pods) return;
  recent.unshift(new WeakRef(pods));
  if (recent.length > MOST_RECENT) recent.pop();
}

/**
 * What is asked of one list of pods again and again: by every plan on a state, and more than once
 * by each. With `update`, the answer for a list follows from that for a list asked about before,
 * where these have most pods in common: so it costs what has changed. `update` leaves the earlier
 * answer as it is, and answers undefined where it does not tell enough.
 */
export function oncePerPods<T extends object>(
  find: (pods: Pods) => T,
  update?: (earlier: T, changes: PodListChanges) => T | undefined,
): (pods: Pods) => T {
  const known = new WeakMap<Pods, T>();
  const follow = (pods: Pods): T | undefined => {
    for (const each of recent) {
      const before = each.deref();
      const earlier = before && known.get(before);
      if (!earlier) continue;
      const changes = podListChanges(before, pods);
      const count = changes.removed.length + changes.changed.length + changes.added.length;
      if (2 * count < pods.length) return update!(earlier, changes);
    }
    return undefined;
  };
  return (pods) => {
    let answer = known.get(pods);
    if (!answer) {
      answer = (update && follow(pods)) ?? find(pods);
      known.set(pods, answer);
      if (update) note(pods);
    }
    return answer;
  };
}

/** Those of a list of pods of which something holds, in their order. */
export const podsThat = (holds: (pod: PodAssignment) => boolean): ((pods: Pods) => Pods) =>
  oncePerPods<Pods>(
    (pods) => pods.filter(holds),
    (earlier, { removed, changed, added }) => {
      if (changed.some(({ before, after }) => holds(before) || holds(after))) return undefined;
      const [gone, more] = [removed.filter(holds), added.filter(holds)];
      const left = gone.length === 0 ? earlier : earlier.filter((pod) => !gone.includes(pod));
      return more.length === 0 ? left : [...left, ...more];
    },
  );
