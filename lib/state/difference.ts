// Difference: what changed from one state to another. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { type PodListChanges, podListChanges, podsAfter, podsBefore } from '../account/pod-list-changes.js';
import { encodeSettings, podText, textOf } from './format/pod-text.js';

export interface Difference extends PodListChanges {
  readonly haveSettingsChanged: boolean;
}

// Compares parsed texts: a state read from a file and one made in memory may order members
// differently.
const isSame = (a: string, b: string) => a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b));

const settingsText = ({ settings }: Assignments) => textOf(settings, encodeSettings);

/**
 * Pods that differ between two states. A pod that was released and admitted again counts as both
 * removed and added. Pods that are the same object in both states are not compared.
 */
export function difference(before: Assignments, after: Assignments): Difference {
  const keyOf = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;
  const changes = podListChanges(before.pods, after.pods);
  const [former, present] = [podsBefore(changes), podsAfter(changes)];
  const old = new Map(former.map((pod) => [keyOf(pod), pod]));
  const now = new Set(present.map(keyOf));
  return {
    added: present.filter((pod) => !old.has(keyOf(pod))),
    removed: former.filter((pod) => !now.has(keyOf(pod))),
    changed: present.flatMap((pod) => {
      const was = old.get(keyOf(pod));
      return was && !isSame(podText(was), podText(pod)) ? [{ before: was, after: pod }] : [];
    }),
    haveSettingsChanged: !isSame(settingsText(before), settingsText(after)),
  };
}
