// Enforcer: makes the kernel agree with the record. CPUs that become exclusive are cleared and read
// back before the commit. CPUs that are given back are opened to others after it. A crash in
// between leaves the shared pool too small, but never causes an overlap.
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { BY_RECORD, type EnforcementLevel, type EnforcementRequest } from '../account/levels.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Comparison } from './drift.js';
import type { Cpusets } from './layout/cpusets.js';
import type { StuckMember, UnpinnedThread } from './members/confinement.js';
import type { SharedMembers } from './members/shared-members.js';

/** CPUs that are cleared for a state that is about to be committed. */
export interface Cleared {
  /** The state, with the level that each new grant has reached. */
  readonly next: Assignments;
  /** Why new grants have not reached the level aimed at. */
  readonly shortfalls: readonly string[];
  /** Opens what is given back, after the commit. Undefined if nothing is given back. */
  readonly settle: (() => void) | undefined;
  /** Call this if the state was not committed. */
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
   * it. REQUIRES: the state's lock, and right afterwards the commit of the returned `next`.
   * @throws ERR_MEMBER_UNMOVABLE; ERR_ENFORCEMENT if a new grant does not reach the level it
   *   requires; then everything is as before
   */
  clear(
    before: Assignments,
    next: Assignments,
    request: EnforcementRequest,
    unpinned?: readonly UnpinnedThread[],
  ): Promise<Cleared> | Cleared;
  /**
   * Makes the kernel agree with a state. Returns what could not be done, and which members are
   * stuck. `isReopened`: CPUs were given back, and members that cannot be moved from here must be
   * notified. REQUIRES: the lock.
   */
  apply(state: Assignments, unpinned?: readonly UnpinnedThread[], isReopened?: boolean): Applied;
  /**
   * Finds what differs from a state below `cgroupRoot` and among the shared members. Needs no lock
   * and changes nothing. `isGivenUp`: true for keys of what will not be repaired.
   * @throws ERR_CGROUP
   */
  compare(state: Assignments, isGivenUp: (key: string) => boolean): Comparison;
  /**
   * The level at which the CPUs of a grant are kept from others now, if its partition is valid:
   * `recorded` if its groups lack some, or the group of another grant has some.
   */
  levelsNow(state: Assignments): (pod: PodAssignment) => EnforcementLevel;
  /** Where processes of grants are put; undefined if only masks are used. */
  cpusetsOf(settings: MachineSettings): Cpusets | undefined;
  /**
   * Whether this process may move the processes of the cgroup that owns a grant. Root may not move
   * just any process because a record says so that others may have written.
   */
  mayMoveOwner(owner: OwnerRecord): boolean;
  readonly members: SharedMembers | undefined;
  /**
   * Records what the threads of this process that run on no grant have chosen. Call it before
   * anything changes their masks or their cpuset: afterwards the kernel shows only a part of it.
   */
  learnChoices(settings: MachineSettings): void;
  /**
   * The CPUs that this process may use, or that only groups of numalign keep from it. Empty without
   * such groups.
   */
  cpusWithinReach(state: Assignments): CpuSet;
  /** Makes this process run in the shared pool from now on. REQUIRES: the lock. */
  join(state: Assignments, onReopen: () => void): void;
  /** Call this as often as {@link join}. */
  leave(): void;
  /**
   * Moves a registered process to the shared pool, into its cgroup if possible. REQUIRES: the lock.
   */
  share(pid: number, state: Assignments): void;
  /**
   * Like {@link share}, but out of the cgroup of a grant too. REQUIRES: the lock. @throws
   * ERR_CGROUP
   */
  shareAnyway(pid: number, state: Assignments): void;
  /**
   * Moves a process that is no longer a member back to where {@link share} took it from, if nothing
   * is exclusive. REQUIRES: the lock.
   */
  unshare(pid: number, state: Assignments): void;
}

/** The machine that grants are enforced on. */
export interface Machine {
  readonly enforcer: Enforcer;
  readonly topology: Topology;
}

/** The enforcer of a simulated machine. */
export const NO_ENFORCER: Enforcer = {
  clear: (_, next) => ({ next, shortfalls: [], settle: undefined, undo: () => {} }),
  apply: () => ({ failed: [], stuck: [] }),
  compare: () => ({ checked: 0, found: [] }),
  levelsNow: () => () => BY_RECORD,
  cpusetsOf: () => undefined,
  mayMoveOwner: () => true,
  members: undefined,
  learnChoices: () => {},
  cpusWithinReach: () => CpuSet.EMPTY,
  join: () => {},
  leave: () => {},
  share: () => {},
  shareAnyway: () => {},
  unshare: () => {},
};
