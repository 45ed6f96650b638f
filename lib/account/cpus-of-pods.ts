// The CPUs of several pods on record. Pure.
import { CpuSet } from '../machine/cpu-set.js';
import type { PodAssignment } from './pod-assignment.js';
import { cpusOf } from './pod-holdings.js';
import { podsAfter, podsBefore } from './pod-list-changes.js';
import { oncePerPods } from './pod-summary.js';

interface HeldCpus {
  readonly cpus: CpuSet;
  /** No CPU is held twice. Only then a pod that leaves takes all of its CPUs with it. */
  readonly isDisjoint: boolean;
}

const NOTHING: HeldCpus = { cpus: CpuSet.EMPTY, isDisjoint: true };

function add({ cpus, isDisjoint }: HeldCpus, pods: readonly PodAssignment[]): HeldCpus {
  let [all, isStillDisjoint] = [cpus, isDisjoint];
  for (const pod of pods) {
    const own = cpusOf(pod);
    isStillDisjoint &&= !all.intersects(own);
    all = all.union(own);
  }
  return { cpus: all, isDisjoint: isStillDisjoint };
}

/** The CPUs of all pods of a state, counted once for each list. */
export const heldCpus = oncePerPods(
  (pods) => add(NOTHING, pods),
  (earlier, changes) => {
    if (!earlier.isDisjoint) return undefined;
    const { cpus } = add(NOTHING, podsBefore(changes));
    return add({ cpus: earlier.cpus.difference(cpus), isDisjoint: true }, podsAfter(changes));
  },
);

export const cpusOfPods = (pods: readonly PodAssignment[]): CpuSet => heldCpus(pods).cpus;

/** The same of pods that are no whole state, counted at each call. */
export const cpusOfSome = (pods: readonly PodAssignment[]): CpuSet => add(NOTHING, pods).cpus;
