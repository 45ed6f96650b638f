// Confinement: where shared members may run, and what has become of them.
import type { PodAssignment } from '../../account/pod-assignment.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
import type { SharedMember } from './shared-member.js';

/** A member that may still run on CPUs that it must leave. */
export interface StuckMember {
  readonly member: SharedMember;
  /** In words. */
  readonly reason: string;
  /** Registrations of processes that may be asked to leave by themselves. */
  readonly names: readonly string[];
}

/**
 * A thread of this process whose mask was changed for it just now, and what it had chosen before it
 * was pinned.
 */
export interface UnpinnedThread {
  readonly tid: number;
  readonly earlier: CpuSet;
}

/** Where members may be from now on. */
export interface Confinement {
  /** CPUs that are nobody's but their holders'. */
  readonly taken: CpuSet;
  /** Where threads go that have chosen nothing else. */
  readonly pool: CpuSet;
  readonly all: CpuSet;
  /** The grants that there will be: their holders' threads stay on them. */
  readonly pods: readonly PodAssignment[];
  /** All CPUs of these, or more. */
  readonly granted: CpuSet;
  /**
   * The CPUs of one of them where its holders' threads can be by right: none that it is only about
   * to get.
   */
  readonly rightfulCpus: (pod: PodAssignment) => CpuSet;
  /** The grants from now on, new ones too: who holds one and cannot leave it is in nobody's way. */
  readonly held: readonly PodAssignment[];
  readonly unpinned: readonly UnpinnedThread[];
  /**
   * What a process may choose from: the CPUs of its cpuset. Undefined where that cannot be told.
   */
  readonly cpusetOf: (pid: number) => CpuSet | undefined;
}

/** What became of the members. */
export interface Confined {
  readonly stuck: readonly StuckMember[];
  /** Off what is taken, but not where they should be, and this process may not move them. */
  readonly refused: readonly StuckMember[];
  /** Processes that only masks keep off. */
  readonly byMask: number;
}

export interface Outcome {
  readonly moved: number;
  /** Why it is not off what is taken. */
  readonly reason?: string | undefined;
  /** This process may not move it: nothing was done. */
  readonly isRefused?: boolean;
}

/** A process that is not where it should be. */
export interface StrayMember {
  readonly member: SharedMember;
  readonly process: ProcessIdentity;
  /** How many of its threads. */
  readonly threads: number;
  repair(): Outcome;
}
