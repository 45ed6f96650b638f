// The CPUs of several pods on record. Pure.
import type { Words } from '../base/words.js';
import { CpuSet } from '../machine/cpu-set.js';
import { LEVELS } from './levels.js';
import type { PodAssignment } from './pod-assignment.js';
import { cpusOf, poolOf } from './pod-holdings.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';

interface HeldCpus {
  readonly cpus: CpuSet;
  /** True if no CPU is held twice. Only then does a leaving pod take all of its CPUs with it. */
  readonly isDisjoint: boolean;
}

const NOTHING: HeldCpus = { cpus: CpuSet.EMPTY, isDisjoint: true };

// Uses one bitmap, because each union would make another set.
function add({ cpus, isDisjoint }: HeldCpus, pods: readonly PodAssignment[]): HeldCpus {
  let all: Words | undefined;
  let isStillDisjoint = isDisjoint;
  for (const pod of pods) {
    const { words } = cpusOf(pod);
    if (words.length === 0) continue;
    if (all === undefined || words.length > all.length) all = copyOf(all ?? cpus.words, words.length);
    if (!addWords(all, words)) isStillDisjoint = false;
  }
  return { cpus: all ? new CpuSet(all) : cpus, isDisjoint: isStillDisjoint };
}

// `least`: the least number of words in the copy.
function copyOf(words: Words, least: number): Words {
  const copy = new Uint32Array(Math.max(words.length, least));
  copy.set(words);
  return copy;
}

// Returns true if no CPU was there before. A separate function, so that V8 compiles it after a few
// pods.
function addWords(all: Words, words: Words): boolean {
  let isDisjoint = true;
  for (let i = 0; i < words.length; i++) {
    if ((all[i]! & words[i]!) !== 0) isDisjoint = false;
    all[i]! |= words[i]!;
  }
  return isDisjoint;
}

// The CPUs of pods of one kind, computed once per list.
const heldBy = (isOne: (pod: PodAssignment) => boolean) =>
  oncePerPods(
    (pods) => add(NOTHING, pods.filter(isOne)),
    (earlier, changes) => {
      if (!earlier.isDisjoint) return undefined;
      const { cpus } = add(NOTHING, podsBefore(changes).filter(isOne));
      return add({ cpus: earlier.cpus.difference(cpus), isDisjoint: true }, podsAfter(changes).filter(isOne));
    },
  );

/** The CPUs of all pods of a state. */
export const heldCpus = heldBy(() => true);
export const cpusOfPods = (pods: readonly PodAssignment[]): CpuSet => heldCpus(pods).cpus;

const heldByPartitions = heldBy(
  (pod) => LEVELS[pod.enforcement.level].isolatesCpus && poolOf(pod) === 'ordinary',
);

/**
 * Ordinary CPUs that grants have made isolated partitions. Returns the same object while these do
 * not change.
 */
export const cpusOfPartitions = (pods: readonly PodAssignment[]): CpuSet => heldByPartitions(pods).cpus;

const sumOfMixed = (pods: readonly PodAssignment[]) => pods.reduce((sum, { mixed = 0 }) => sum + mixed, 0);

const mixedBooking = oncePerPods(
  (pods) => ({ milli: sumOfMixed(pods) }),
  ({ milli }, changes) => ({
    milli: milli - sumOfMixed(podsBefore(changes)) + sumOfMixed(podsAfter(changes)),
  }),
);

/** Millicores of the shared pool that pods book beside their CPUs. */
export const mixedOfPods = (pods: readonly PodAssignment[]): number => mixedBooking(pods).milli;

/** The CPUs of some pods of a state, computed at each call. */
export const cpusOfSome = (pods: readonly PodAssignment[]): CpuSet => add(NOTHING, pods).cpus;
