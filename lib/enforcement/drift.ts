// Drift: something that is not as the record says, and what became of it.
import type { NumalignError } from '../base/errors.js';
import type { CpuSet } from '../machine/cpu-set.js';

/**
 * `thread`: a thread that runs for a grant and may run outside of it. `cgroup`: the cgroup of a
 * grant has other CPUs, or has lost threads. `partition`: the root is no valid partition, or one of
 * other CPUs. `memory`: the cgroup of a grant has other memory nodes than are booked. `pool`: a
 * cgroup of the shared pool has other CPUs. `member`: a shared member may run where it must not, or
 * may not where it could. `leftover`: a cgroup whose grant is gone. `level`: a grant is kept from
 * others less strongly than was on record. `quiet`: a setting of the kernel is not what quiet grants need,
 * or what is left of one that was.
 */
export type DriftKind =
  | 'thread'
  | 'cgroup'
  | 'partition'
  | 'memory'
  | 'pool'
  | 'member'
  | 'leftover'
  | 'level'
  | 'quiet';

/** What a manager tells by its event `drift`. */
export interface Drift {
  readonly kind: DriftKind;
  /** The grant's id; null where it is nobody's in particular. */
  readonly uid: string | null;
  /** For people. */
  readonly what: string;
  readonly repaired: boolean;
  /**
   * It was repaired twice and is different again: it is left alone until it is found right, or the
   * grant changes.
   */
  readonly contested: boolean;
}

/**
 * CPUs of a grant of this process have gone offline, or are back; or the kubelet has taken them from
 * one that moves then (`onTaken`): what a manager tells by its event `hotplug`.
 */
export interface Hotplug {
  readonly uid: string;
  /** What the grant runs on now. */
  readonly cpus: CpuSet;
  readonly lost: CpuSet;
  /** What it has got for them. */
  readonly substitutes: CpuSet;
  /**
   * Those of `lost` for which there was nothing: on record they stay the grant's, and are its own
   * again once they are back.
   */
  readonly revoked: CpuSet;
  readonly returned: CpuSet;
  /**
   * Nothing is left of it for the time being: the threads of this process wait in the shared pool.
   */
  readonly isParked: boolean;
  /** Why there was nothing. */
  readonly error: NumalignError | null;
}

/** One round of reconciling. */
export interface ReconcileReport {
  /** How many things were compared: threads, cgroups, members. */
  readonly checked: number;
  readonly repaired: number;
  /** What is left alone at present because somebody always changes it back. */
  readonly contested: number;
  /** Masks set, writes to cgroups, and commits; 0 where all was as it should be. */
  readonly writes: number;
  /** What was not as it should be, but for what was contested before. */
  readonly drifts: readonly Drift[];
  readonly hotplug: readonly Hotplug[];
}

/** Something that is different from what it should be. */
export interface Found {
  readonly kind: DriftKind;
  readonly uid: string | null;
  readonly what: string;
  /** Of memory nodes: the group's. */
  readonly container?: string | undefined;
  /** The same for the same thing in the same state. */
  readonly key: string;
  /**
   * Answers how many masks it has set. REQUIRES: the state's lock.
   * @throws ERR_CGROUP, ERR_SYSCALL
   */
  repair(): number;
}

export interface Comparison {
  readonly checked: number;
  readonly found: readonly Found[];
}

export function together(comparisons: readonly Comparison[]): Comparison {
  return {
    checked: comparisons.reduce((sum, { checked }) => sum + checked, 0),
    found: comparisons.flatMap(({ found }) => found),
  };
}
