// Enforcer: has the kernel agree with the record. CPUs that are about to be somebody's alone are
// cleared before the commit, and read back; those that are given back are opened to the others
// after it. So a crash in between leaves the shared pool too small, never an overlap.
import type { Assignments, MachineSettings } from '../account/assignments.js';
import type { EnforcementRequest } from '../account/levels.js';
import type { EnforcementLevel } from '../account/pod-assignment.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Cpusets } from './cpusets/cpusets.js';
import type { Comparison } from './drift.js';
import type { StuckMember, UnpinnedThread } from './members/confinement.js';
import type { SharedMembers } from './members/shared-members.js';

/** CPUs are cleared for a state that is about to be committed. */
export interface Cleared {
  /** With the level that each new grant has reached. */
  readonly next: Assignments;
  /** Why new grants have not reached what was aimed at. */
  readonly shortfalls: readonly string[];
  /** Opens what is given back, once it is committed. Undefined where nothing is. */
  readonly settle: (() => void) | undefined;
  /** It was not committed. */
  undo(): void;
}

/** What could not be done. */
export interface Applied {
  readonly failed: readonly string[];
  readonly stuck: readonly StuckMember[];
}

export interface Enforcer {
  /**
   * Clears what `next` takes. `unpinned`: threads of this process that have left their grants for
   * it. REQUIRES: the state's lock, and the commit of the answer's `next` right after.
   * @throws ERR_MEMBER_UNMOVABLE, ERR_ENFORCEMENT where a new grant does not reach what it
   *   requires; then everything is as it was
   */
  clear(
    before: Assignments,
    next: Assignments,
    request: EnforcementRequest,
    unpinned?: readonly UnpinnedThread[],
  ): Promise<Cleared> | Cleared;
  /**
   * Has the kernel agree with a state, as far as it does not. Returns what could not be done, and
   * who is stuck. `isReopened`: CPUs were given back, which those who cannot be moved from here
   * must hear. REQUIRES: the lock.
   */
  apply(state: Assignments, unpinned?: readonly UnpinnedThread[], isReopened?: boolean): Applied;
  /**
   * What is not as a state says, as far as it is ours to change: below `cgroupRoot`, and of the
   * shared members. Needs no lock, and changes nothing; `isGivenUp`: of what will not be repaired.
   * @throws ERR_CGROUP
   */
  compare(state: Assignments, isGivenUp: (key: string) => boolean): Comparison;
  /** The level at which CPUs are kept from the shared members now, with no partition. */
  levelNow(state: Assignments): EnforcementLevel;
  /** Where processes of grants are put; undefined where masks must do. */
  cpusetsOf(settings: MachineSettings): Cpusets | undefined;
  readonly members: SharedMembers | undefined;
  /**
   * Has it known what the threads of this process have chosen that run on no grant. Before anything
   * that changes their masks, or what their cpuset has: afterwards the kernel shows only a part of
   * it.
   */
  learnChoices(settings: MachineSettings): void;
  /**
   * CPUs that this process may use, or only groups of ours keep from it; none where there are no
   * such groups.
   */
  cpusWithinReach(state: Assignments): CpuSet;
  /** This process runs in the shared pool from now on. REQUIRES: the lock. */
  join(state: Assignments, reopened: () => void): void;
  /** As often as {@link join}. */
  leave(): void;
  /**
   * A registered process goes to the shared pool: into its cgroup where that is possible. REQUIRES:
   * the lock.
   */
  share(pid: number, state: Assignments): void;
  /** The same, and out of the cgroup of a grant too. REQUIRES: the lock. @throws ERR_CGROUP */
  shareAnyway(pid: number, state: Assignments): void;
  /**
   * A process that is no member any more goes back to where {@link share} took it from, where
   * nothing is exclusive. REQUIRES: the lock.
   */
  unshare(pid: number, state: Assignments): void;
}

/** Of a simulated machine. */
export const NO_ENFORCER: Enforcer = {
  clear: (_, next) => ({ next, shortfalls: [], settle: undefined, undo: () => {} }),
  apply: () => ({ failed: [], stuck: [] }),
  compare: () => ({ checked: 0, found: [] }),
  levelNow: () => 'recorded',
  cpusetsOf: () => undefined,
  members: undefined,
  learnChoices: () => {},
  cpusWithinReach: () => CpuSet.EMPTY,
  join: () => {},
  leave: () => {},
  share: () => {},
  shareAnyway: () => {},
  unshare: () => {},
};
