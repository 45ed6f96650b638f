// Difference: what one state has that another has not. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { encodeSettings, podText, textOf } from './files/pod-text.js';

export interface Difference {
  readonly added: readonly PodAssignment[];
  readonly removed: readonly PodAssignment[];
  readonly changed: readonly { readonly before: PodAssignment; readonly after: PodAssignment }[];
  readonly haveSettingsChanged: boolean;
}

// As they are in files, whatever the order of their members: what was read and what was made here
// may differ in that.
const isSame = (a: string, b: string) => a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b));

const settingsText = ({ settings }: Assignments) => textOf(settings, encodeSettings);

type Pods = readonly PodAssignment[];

// The pods of both that the other does not have as the same objects. A commit leaves the others in
// their order, so that most need not be looked up.
function distinct(before: Pods, after: Pods): readonly [Pods, Pods] {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const [old, now] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  return [without(old, now), without(now, old)];
}

function without(pods: Pods, others: Pods): Pods {
  const known = new Set(others);
  return pods.filter((pod) => !known.has(pod));
}

/**
 * A pod that was released and admitted again is both removed and added. Pods that are the same
 * objects in both are not looked into.
 */
export function difference(before: Assignments, after: Assignments): Difference {
  const keyOf = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;
  const [earlier, later] = distinct(before.pods, after.pods);
  const old = new Map(earlier.map((pod) => [keyOf(pod), pod]));
  const now = new Set(later.map(keyOf));
  return {
    added: later.filter((pod) => !old.has(keyOf(pod))),
    removed: earlier.filter((pod) => !now.has(keyOf(pod))),
    changed: later.flatMap((pod) => {
      const was = old.get(keyOf(pod));
      return was && !isSame(podText(was), podText(pod)) ? [{ before: was, after: pod }] : [];
    }),
    haveSettingsChanged:
      before.settings !== after.settings && !isSame(settingsText(before), settingsText(after)),
  };
}
