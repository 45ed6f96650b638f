// What is worked out of a whole list of pods, once for each list. Pure.

import type { PodAssignment } from './pod-assignment.js';
import { type PodListChanges, podListChanges } from './pod-list-changes.js';

type Pods = readonly PodAssignment[];

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
