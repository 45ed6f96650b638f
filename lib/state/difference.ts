// Difference: what one state has that another has not. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { encodePod } from './files/pod-text.js';

export interface Difference {
  readonly added: readonly PodAssignment[];
  readonly removed: readonly PodAssignment[];
  readonly changed: readonly { readonly before: PodAssignment; readonly after: PodAssignment }[];
  readonly haveSettingsChanged: boolean;
}

// As they are in files, whatever the order of their members: what was read and what was made here
// may differ in that.
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const isSame = (a: unknown, b: unknown) => a === b || isDeepStrictEqual(plain(a), plain(b));

const without = (pods: readonly PodAssignment[], others: readonly PodAssignment[]) => {
  const known = new Set(others);
  return pods.filter((pod) => !known.has(pod));
};

/**
 * A pod that was released and admitted again is both removed and added. Pods that are the same
 * objects in both are not looked into.
 */
export function difference(before: Assignments, after: Assignments): Difference {
  const keyOf = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;
  const [earlier, later] = [without(before.pods, after.pods), without(after.pods, before.pods)];
  const old = new Map(earlier.map((pod) => [keyOf(pod), pod]));
  const now = new Set(later.map(keyOf));
  return {
    added: later.filter((pod) => !old.has(keyOf(pod))),
    removed: earlier.filter((pod) => !now.has(keyOf(pod))),
    changed: later.flatMap((pod) => {
      const was = old.get(keyOf(pod));
      return was && !isSame(encodePod(was), encodePod(pod)) ? [{ before: was, after: pod }] : [];
    }),
    haveSettingsChanged: !isSame(before.settings, after.settings),
  };
}
