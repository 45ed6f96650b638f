// Quieter: has the kernel keep its own work away from the CPUs of quiet grants, and restores what was
// there. What is written is on record before, and what is on record is restored before a grant leaves
// it: so a crash in between leaves a setting that the next step finds on record.
import type { Assignments } from '../account/assignments.js';
import type { Comparison } from '../enforcement/drift.js';
import { noOutcome, type QuietOutcome } from './outcome.js';

/** Puts a state on record, under the lock that is held. */
export type RecordState = (state: Assignments) => Promise<void>;

/** Settings of the kernel on their way to the next state. */
export interface QuietStep {
  /** The next state, with the settings that are about to be written. */
  readonly next: Assignments;
  /**
   * Writes them. `committed`: `next` as it was committed. Answers it with what the kernel has refused
   * or restored; the same object where the record stays the same.
   */
  write(committed: Assignments): Promise<Assignments>;
  /** In words: settings that are left with the value of somebody else. */
  readonly foreign: readonly string[];
  /** `next` was not committed: what was restored for it is written again. */
  undo(): Promise<void>;
}

/** All settings are looked at. */
export interface QuietReview {
  /** Of paths that stay as they are, because somebody else always changes them back. */
  readonly isGivenUp: (path: string) => boolean;
}

export interface Quieter {
  /**
   * Restores what no grant of `next` asks for any more. undefined where nothing is to do, and nothing
   * was done. `record`: commits a state on the way. `review`: looks at all settings though the record
   * says nothing new of them. REQUIRES: the state's lock.
   */
  follow(
    before: Assignments,
    next: Assignments,
    record: RecordState,
    review?: QuietReview,
  ): Promise<QuietStep> | undefined;
  /** What is reached for a grant. Reads the kernel's files. */
  outcome(state: Assignments, uid: string): QuietOutcome;
  /** What is not as the record says. Needs no lock, and changes nothing. */
  compare(state: Assignments): Promise<Comparison>;
}

/** Of a simulated machine, whose kernel does nothing. */
export const NO_QUIETER: Quieter = {
  follow: () => undefined,
  outcome: (state, uid) => noOutcome(state, uid, 'the machine is simulated'),
  compare: async () => ({ checked: 0, found: [] }),
};

/** Of what {@link Quieter.compare} finds about the setting at a path. */
export const quietKey = (path: string): string => `quiet ${path}`;
