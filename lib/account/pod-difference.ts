// What is different between two lists of pods. Pure.
import type { PodAssignment } from './pod-assignment.js';

/** Pods of a list that another list has not, as they are, and the other way round. */
export interface PodDifference {
  readonly gone: readonly PodAssignment[];
  readonly come: readonly PodAssignment[];
}

/**
 * The same objects are the same pods: a state that is derived from another has those that did not
 * change, in their order. Compares what is at both ends of the lists first, so that what it costs
 * beyond that follows the change.
 */
export function podDifference(
  before: readonly PodAssignment[],
  after: readonly PodAssignment[],
): PodDifference {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && before[start] === after[start]) start++;
  let end = 0;
  while (end < least - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  if (old.length === 0 || now.length === 0) return { gone: old, come: now };
  const [olds, nows] = [new Set(old), new Set(now)];
  return { gone: old.filter((pod) => !nows.has(pod)), come: now.filter((pod) => !olds.has(pod)) };
}
