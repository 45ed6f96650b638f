// Drift: something that differs from the record, and what became of it.
import type { NumalignError } from '../base/errors.js';
import type { CpuSet } from '../machine/cpu-set.js';

/**
 * What kind of difference reconciling found. `thread`: a thread of a grant may run outside of it.
 * `cgroup`: the cgroup of a grant has other CPUs, or lost threads; or the root lacks CPUs.
 * `partition`: the root is no valid partition, or has other CPUs. `memory`: the cgroup of a grant
 * has other memory nodes than booked, or the root lacks some. `pool`: a cgroup of the shared pool
 * has other CPUs. `member`: a shared member may run where it must not, or may not where it could.
 * `leftover`: a cgroup without a grant. `level`: a grant has a weaker level than recorded, or can
 * have the one again from which it fell. `quiet`: a kernel setting is not what quiet grants need, or
 * a left-over of one.
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

/** A difference that reconciling found: the event `drift`. */
export interface Drift {
  /** What differs from the record. */
  readonly kind: DriftKind;
  /** The uid of the grant; null if it concerns no single grant. */
  readonly uid: string | null;
  /** A description for people. */
  readonly what: string;
  /** Whether the difference is gone after the repair. */
  readonly repaired: boolean;
  /**
   * Whether it differs again after two repairs. It is left alone until it is right or the grant
   * changes.
   */
  readonly contested: boolean;
}

/**
 * CPUs of a grant of this process went offline or came back, or the kubelet took them from a grant
 * with `onTaken: 'move'`: the event `hotplug`.
 */
export interface Hotplug {
  /** The uid of the grant. */
  readonly uid: string;
  /** The CPUs of the grant now. */
  readonly cpus: CpuSet;
  /** The lost CPUs. */
  readonly lost: CpuSet;
  /** The CPUs that replace them. */
  readonly substitutes: CpuSet;
  /**
   * Those of `lost` without a replacement. They stay on record, and belong to the grant again when
   * they are back.
   */
  readonly revoked: CpuSet;
  /** The CPUs that came back. */
  readonly returned: CpuSet;
  /** Whether the grant has no CPU left: the threads of this process wait in the shared pool. */
  readonly isParked: boolean;
  /** Why there is no replacement. */
  readonly error: NumalignError | null;
}

/** One round of {@link Manager.reconcile}. */
export interface ReconcileReport {
  /** How many threads, cgroups and members were compared. */
  readonly checked: number;
  /** How many of `drifts` are gone after this round. */
  readonly repaired: number;
  /** How many differences are left alone, because another program always changes them back. */
  readonly contested: number;
  /** Masks set, writes to cgroups, and commits; 0 without a difference. */
  readonly writes: number;
  /** The differences, without those that were contested before. */
  readonly drifts: readonly Drift[];
  /** Grants of this process that lost CPUs or got some back. */
  readonly hotplug: readonly Hotplug[];
}

/** A difference from what should be, and its repair. */
export interface RepairableDrift {
  readonly kind: DriftKind;
  readonly uid: string | null;
  readonly what: string;
  /** For memory nodes: the group's container. */
  readonly container?: string | undefined;
  /** Equal for the same thing in the same state. */
  readonly key: string;
  /**
   * Returns the number of masks set. REQUIRES: the state's lock.
   * @throws ERR_CGROUP, ERR_SYSCALL
   */
  repair(): number;
}

export interface Comparison {
  readonly checked: number;
  readonly drifts: readonly RepairableDrift[];
}

export function together(comparisons: readonly Comparison[]): Comparison {
  return {
    checked: comparisons.reduce((sum, { checked }) => sum + checked, 0),
    drifts: comparisons.flatMap(({ drifts }) => drifts),
  };
}
