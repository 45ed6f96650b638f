// Difference: what one state has that another has not. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { encodePod } from './format/pod-text.js';

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

/** A pod that was released and admitted again is both removed and added. */
export function difference(before: Assignments, after: Assignments): Difference {
  const keyOf = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;
  const old = new Map(before.pods.map((pod) => [keyOf(pod), pod]));
  const now = new Set(after.pods.map(keyOf));
  return {
    added: after.pods.filter((pod) => !old.has(keyOf(pod))),
    removed: before.pods.filter((pod) => !now.has(keyOf(pod))),
    changed: after.pods.flatMap((pod) => {
      const was = old.get(keyOf(pod));
      return was && !isSame(encodePod(was), encodePod(pod)) ? [{ before: was, after: pod }] : [];
    }),
    haveSettingsChanged: !isSame(before.settings, after.settings),
  };
}
