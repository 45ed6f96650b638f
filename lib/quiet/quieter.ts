// Quieter: keeps the kernel's own work off the CPUs of quiet grants, and restores the earlier
// settings. Each write is on record before it happens, and each setting is restored before its
// record goes. So a crash in between leaves a setting that the next step finds on record.
import type { Assignments } from '../account/assignments.js';
import type { Comparison } from '../enforcement/drift.js';
import { noOutcome, type QuietOutcome } from './outcome.js';

/** Puts a state on record, under the lock that is held. */
export type RecordState = (state: Assignments) => Promise<void>;

/** Kernel settings on their way to the next state. */
export interface QuietStep {
  /** The next state, with the settings that are about to be written. */
  readonly next: Assignments;
  /**
   * Writes them. `committed`: `next` as committed. Returns it with what the kernel has refused or
   * restored; the same object if the record stays the same.
   */
  write(committed: Assignments): Promise<Assignments>;
  /** Sentences about settings that keep the value of another program. */
  readonly foreign: readonly string[];
  /** Call this if `next` was not committed: writes again what was restored for it. */
  undo(): Promise<void>;
}

/** A look at all settings. */
export interface QuietReview {
  /** True for paths to leave alone because another program keeps changing them back. */
  readonly isGivenUp: (path: string) => boolean;
}

export interface Quieter {
  /**
   * Restores what no grant of `next` asks for any more. Undefined if there is nothing to do, and
   * nothing was done. `record` commits a state on the way. `review` looks at all settings even if
   * the record has not changed. REQUIRES: the state's lock.
   */
  follow(
    before: Assignments,
    next: Assignments,
    record: RecordState,
    review?: QuietReview,
  ): Promise<QuietStep> | undefined;
  /** How much of a grant's quiet is reached. Reads kernel files. */
  outcome(state: Assignments, uid: string): QuietOutcome;
  /** Finds what differs from the record. Needs no lock, and changes nothing. */
  compare(state: Assignments): Promise<Comparison>;
}

/** The quieter of a simulated machine, whose kernel does nothing. */
export const NO_QUIETER: Quieter = {
  follow: () => undefined,
  outcome: (state, uid) => noOutcome(state, uid, 'the machine is simulated'),
  compare: async () => ({ checked: 0, drifts: [] }),
};

/** The key of what {@link Quieter.compare} finds about the setting at a path. */
export const quietKey = (path: string): string => `quiet ${path}`;
