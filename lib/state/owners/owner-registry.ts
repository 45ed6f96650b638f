// OwnerRegistry: the owners of grants on record, and whether they live.
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import type { OwnerChoice } from '../../input/requests/owner.js';

/** Questions about owners. They change nothing. */
export interface OwnerLookup {
  isOwn(owner: OwnerRecord): boolean;
  /** True if the process (or Worker) with this file lives. */
  isProcessAlive(uuid: string): boolean;
  /**
   * The grants whose owners are dead. `mostCgroups`: checks at least this many cgroups, in turns;
   * the default is all.
   */
  deadPods(pods: readonly PodAssignment[], mostCgroups?: number): readonly PodAssignment[];
}

/**
 * The owners of grants on record, and whether they live. Every member outside {@link OwnerLookup}
 * REQUIRES a transaction.
 */
export interface OwnerRegistry extends OwnerLookup {
  /**
   * The record of an owner: this environment's record, or a new one.
   * @throws ERR_INVALID_OPTION for a cgroup that does not exist or is empty, ERR_SYSCALL if the
   *   owner's file cannot be made
   */
  recordFor(owner: OwnerChoice): OwnerRecord;
  /** The descriptor of a lock, for a child that keeps the grants alive. */
  ownFd(): number | undefined;
  /**
   * Gives up this environment's share of its only grant. Returns true if a child still holds it.
   */
  handOver(uid: string): boolean;
  orphans(pods: readonly PodAssignment[]): PodAssignment[];
  isAlive(owner: OwnerRecord): boolean;
  /** True if the uuid is this environment's. */
  isOwnProcess(uuid: string): boolean;
}
