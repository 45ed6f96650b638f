// The CPUs of several pods on record. Pure.
import type { Words } from '../base/words.js';
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

// In one bitmap for all of them: each union of sets would make another.
function add({ cpus, isDisjoint }: HeldCpus, pods: readonly PodAssignment[]): HeldCpus {
  let words = cpus.words;
  let isOwn = false;
  let isStillDisjoint = isDisjoint;
  for (const pod of pods) {
    const own = cpusOf(pod).words;
    if (own.length === 0) continue;
    if (!isOwn || own.length > words.length) words = widened(words, own.length);
    isOwn = true;
    for (let i = 0; i < own.length; i++) {
      const word = own[i]!;
      if (word === 0) continue;
      if ((words[i]! & word) !== 0) isStillDisjoint = false;
      words[i]! |= word;
    }
  }
  return { cpus: isOwn ? new CpuSet(words) : cpus, isDisjoint: isStillDisjoint };
}

// A copy, with room for twice as many words as it needs.
function widened(words: Words, least: number): Words {
  const wide = new Uint32Array(words.length >= least ? words.length : 2 * least);
  wide.set(words);
  return wide;
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
