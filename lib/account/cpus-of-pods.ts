// The CPUs of several pods on record, counted once. Pure.
import { CpuSet } from '../machine/cpu-set.js';
import type { PodAssignment } from './pod-assignment.js';
import { cpusOf } from './pod-holdings.js';

/**
 * What is asked of one list of pods again and again: by every plan on a state, and more than once
 * by each.
 */
export function oncePerPods<T extends object>(
  find: (pods: readonly PodAssignment[]) => T,
): (pods: readonly PodAssignment[]) => T {
  const found = new WeakMap<readonly PodAssignment[], T>();
  return (pods) => {
    let known = found.get(pods);
    if (!known) {
      known = find(pods);
      found.set(pods, known);
    }
    return known;
  };
}

export const cpusOfPods = oncePerPods((pods) => {
  let cpus = CpuSet.EMPTY;
  for (const pod of pods) cpus = cpus.union(cpusOf(pod));
  return cpus;
});
