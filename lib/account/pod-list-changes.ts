// The differences between two lists of pods, and results cached per list. Pods never change, so the
// same object is the same pod. Pure.
import type { PodAssignment } from './pod-assignment.js';

/**
 * The steps from one list of pods to another: removed pods leave, changed ones are replaced in
 * place, added ones come last. A pod that only changes its place is removed and added.
 */
export interface PodListChanges {
  readonly removed: readonly PodAssignment[];
  readonly changed: readonly { readonly before: PodAssignment; readonly after: PodAssignment }[];
  readonly added: readonly PodAssignment[];
}

type Pods = readonly PodAssignment[];

/** What is known of a list. One entry in a WeakMap, each of which costs time at a garbage collection. */
interface Known {
  readonly id: number;
  /** The last comparison with an earlier list: each commit compares the same two several times. */
  last: { readonly before: Pods; readonly changes: PodListChanges } | undefined;
  /** Results of {@link oncePerPods}, by its number. */
  readonly answers: (object | undefined)[];
}

// Two maps that are replaced in turn. A minor garbage collection takes what is in an old one for alive,
// although its list is not.
let known = new WeakMap<Pods, Known>();
let earlierKnown = known;
const MOST_KNOWN = 32;

let lists = 0;
let added = 0;

function lookUp(pods: Pods): Known | undefined {
  return known.get(pods) ?? earlierKnown.get(pods);
}

function knownOf(pods: Pods): Known {
  let found = known.get(pods);
  if (found) return found;
  found = earlierKnown.get(pods) ?? { id: ++lists, last: undefined, answers: [] };
  if (++added > MOST_KNOWN) {
    [earlierKnown, known] = [known, new WeakMap()];
    added = 0;
  }
  known.set(pods, found);
  return found;
}

/**
 * One pass over both lists, which compares only references where nothing has changed. No list has a
 * pod twice.
 */
export function podListChanges(before: Pods, after: Pods): PodListChanges {
  const now = knownOf(after);
  if (now.last?.before === before) return now.last.changes;
  // Else each list would keep all before it.
  knownOf(before).last = undefined;
  now.last = { before, changes: compare(before, after) };
  return now.last.changes;
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

/** The pods of the first list that are not in the second unchanged. */
export const podsBefore = ({ removed, changed }: PodListChanges): readonly PodAssignment[] =>
  changed.length === 0 ? removed : [...removed, ...changed.map(({ before }) => before)];

/** The pods of the second list that are not in the first unchanged. */
export const podsAfter = ({ added, changed }: PodListChanges): readonly PodAssignment[] =>
  changed.length === 0 ? added : [...changed.map(({ after }) => after), ...added];

/**
 * The pods of two lists without duplicates; a changed pod appears in both forms. Pods of only the
 * first list come last, so that the changes from either list are few.
 */
export function podsOfBoth(before: Pods, after: Pods): Pods {
  const former = podsBefore(podListChanges(before, after));
  return former.length === 0 ? after : [...new Set([...after, ...former])];
}

// The lists used last, the latest first. Held weakly, so that an unused state is not kept.
const recent: WeakRef<Pods>[] = [];
const MOST_RECENT = 4;

// So few pods with one change between them have nothing to derive from.
const FEW = 2;

let functions = 0;

// The id of the latest: looking at a weak reference takes longer.
let latest = 0;

function note(pods: Pods): void {
  const { id } = knownOf(pods);
  if (id === latest) return;
  latest = id;
  recent.unshift(new WeakRef(pods));
  if (recent.length > MOST_RECENT) recent.pop();
}

/**
 * Caches a result per list of pods, which every plan on a state needs more than once. With
 * `update`, derives the result from that of a recent list with mostly the same pods, so that the
 * cost is that of the changes. `update` does not modify the earlier result, and returns undefined
 * if the changes are not enough.
 */
export function oncePerPods<T extends object>(
  find: (pods: Pods) => T,
  update?: (earlier: T, changes: PodListChanges) => T | undefined,
): (pods: Pods) => T {
  const number = functions++;
  const derived = (before: Pods | undefined, pods: Pods): T | undefined => {
    const earlier = before && (lookUp(before)?.answers[number] as T | undefined);
    if (!earlier) return undefined;
    const changes = podListChanges(before, pods);
    const count = changes.removed.length + changes.changed.length + changes.added.length;
    return 2 * count < pods.length ? update!(earlier, changes) : undefined;
  };
  const follow = (pods: Pods): T | undefined => {
    // Most often the list before. A look at a weak reference takes longer.
    const answer = derived(lookUp(pods)?.last?.before, pods);
    if (answer) return answer;
    for (const each of recent) {
      const found = derived(each.deref(), pods);
      if (found) return found;
    }
    return undefined;
  };
  return (pods) => {
    const { answers } = knownOf(pods);
    let answer = answers[number] as T | undefined;
    if (!answer) {
      const isFollowed = update && pods.length > FEW;
      answer = (isFollowed && follow(pods)) || find(pods);
      answers[number] = answer;
      if (isFollowed) note(pods);
    }
    return answer;
  };
}

/** The pods of a list for which `holds` is true, in their order. */
export const podsThat = (holds: (pod: PodAssignment) => boolean): ((pods: Pods) => Pods) =>
  oncePerPods<Pods>(
    (pods) => pods.filter(holds),
    (earlier, { removed, changed, added }) => {
      if (changed.some(({ before, after }) => holds(before) || holds(after))) return undefined;
      const [losses, gains] = [removed.filter(holds), added.filter(holds)];
      const left = losses.length === 0 ? earlier : earlier.filter((pod) => !losses.includes(pod));
      return gains.length === 0 ? left : [...left, ...gains];
    },
  );
