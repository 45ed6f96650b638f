// Difference: what one state has that another has not. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { podListChanges, podsAfter, podsBefore } from '../account/pod-list-changes.js';
import { encodeSettings, podText, textOf } from './format/pod-text.js';

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

/**
 * A pod that was released and admitted again is both removed and added. Pods that are the same
 * objects in both are not looked into.
 */
export function difference(before: Assignments, after: Assignments): Difference {
  const keyOf = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;
  const changes = podListChanges(before.pods, after.pods);
  const [earlier, later] = [podsBefore(changes), podsAfter(changes)];
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
