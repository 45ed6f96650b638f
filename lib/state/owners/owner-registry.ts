// OwnerRegistry: who owns what on record, and whether they live.
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import type { OwnerChoice } from '../../input/owner.js';

/** The questions about owners that change nothing. */
export interface OwnerLookup {
  isOwn(owner: OwnerRecord): boolean;
  /** Whether the process (or Worker) with this file lives. */
  isProcessAlive(uuid: string): boolean;
  /**
   * The grants whose owners are dead. `mostCgroups`: of that many cgroups that is found out at least,
   * other ones each time; default: of all.
   */
  deadPods(pods: readonly PodAssignment[], mostCgroups?: number): readonly PodAssignment[];
}

/**
 * Who owns what, and whether they live. Every member but the questions REQUIRES to be in a
 * transaction.
 */
export interface OwnerRegistry extends OwnerLookup {
  /**
   * The record of an owner: this environment's own, or a new one.
   * @throws ERR_INVALID_OPTION for a cgroup that is none or is empty, ERR_SYSCALL where the owner's
   *   file cannot be made
   */
  recordFor(owner: OwnerChoice): OwnerRecord;
  /** Descriptor of a lock, for a child that shall keep the grants alive. */
  ownFd(): number | undefined;
  /** Gives up this environment's share of its only grant; says whether a child still has one. */
  handOver(uid: string): boolean;
  orphans(pods: readonly PodAssignment[]): PodAssignment[];
  isAlive(owner: OwnerRecord): boolean;
  /** Whether it is the uuid of this environment. */
  isOwnProcess(uuid: string): boolean;
}
