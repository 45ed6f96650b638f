// Confinement: where shared members may run, and what became of them.
import type { PodAssignment } from '../../account/pod-assignment.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { type ProcessIdentity, usersOf } from '../../processes/process-identity.js';
import type { SharedMember } from './shared-member.js';

/** A member that may still run on CPUs that it must leave. */
export interface StuckMember {
  readonly member: SharedMember;
  /** The reason in words. */
  readonly reason: string;
  /** Registrations of processes that can be asked to leave by themselves. */
  readonly names: readonly string[];
}

/**
 * A thread of this process whose mask was just changed for a confinement, and what it had chosen
 * before it was pinned.
 */
export interface UnpinnedThread {
  readonly tid: number;
  readonly earlier: CpuSet;
}

/** Where members may run from now on. */
export interface Confinement {
  /** CPUs that only their holders may use. */
  readonly taken: CpuSet;
  /** The CPUs of threads that have chosen nothing else. */
  readonly pool: CpuSet;
  readonly all: CpuSet;
  /** The grants that stay: their holders' threads stay on them. */
  readonly pods: readonly PodAssignment[];
  /** At least all CPUs of these grants. */
  readonly granted: CpuSet;
  /**
   * The CPUs of a grant that its holders' threads may already use: not those that it is about to
   * get.
   */
  readonly rightfulCpus: (pod: PodAssignment) => CpuSet;
  /**
   * All grants from now on, with new ones. A holder that cannot leave its own grant is in no member's
   * way.
   */
  readonly held: readonly PodAssignment[];
  readonly unpinned: readonly UnpinnedThread[];
  /** The CPUs of a process's cpuset, which its threads may choose from; undefined if unknown. */
  readonly cpusetOf: (pid: number) => CpuSet | undefined;
  /** Called with what gives the threads of a process the masks that they had. Needs no file. */
  readonly onMoved?: ((putBack: () => void) => void) | undefined;
}

/** What became of the members. */
export interface Confined {
  readonly stuck: readonly StuckMember[];
  /** Members off the taken CPUs, but not where they should be, that this process may not move. */
  readonly refused: readonly StuckMember[];
  /** The number of processes that only masks keep off. */
  readonly byMask: number;
}

export interface Outcome {
  readonly moved: number;
  /** Why it is still on taken CPUs. */
  readonly reason?: string | undefined;
  /** True if this process may not move it, so nothing was done. */
  readonly isRefused?: boolean;
}

/** A process that is not where it should be. */
export interface StrayMember {
  readonly member: SharedMember;
  readonly process: ProcessIdentity;
  /** The number of its threads that stray. */
  readonly threads: number;
  repair(): Outcome;
}

/** Why a member cannot be moved. */
export const stuckText = ({ member, reason }: StuckMember) =>
  member.kind === 'process'
    ? `process ${member.pid} (${member.command}) cannot be moved: ${reason}${/\bEPERM$/.test(reason) ? ownerText(member.pid) : ''}`
    : `a process in ${member.path} cannot be moved: ${reason}`;

/** Whose process it is, if only its owner and root may move it; empty if that cannot be seen. */
export function ownerText(pid: number): string {
  const user = usersOf(pid)?.at(-1);
  if (user === undefined) return '';
  return user === 0 ? ` (it is root's)` : ` (it is user ${user}'s)`;
}
