// Drift: something that differs from the record, and what became of it.
import type { NumalignError } from '../base/errors.js';
import type { CpuSet } from '../machine/cpu-set.js';

/**
 * What has drifted:
 * - `thread`: a thread that runs for a grant may run outside of it.
 * - `cgroup`: the cgroup of a grant has other CPUs, or has lost threads.
 * - `partition`: the root is not a valid partition, or has other CPUs.
 * - `memory`: the cgroup of a grant has other memory nodes than are booked.
 * - `pool`: a cgroup of the shared pool has other CPUs.
 * - `member`: a shared member may run where it must not, or may not run where it could.
 * - `leftover`: a cgroup outlives its grant.
 * - `level`: a grant is kept from others less strongly than the record says.
 * - `quiet`: a kernel setting is not what quiet grants need, or remains from an earlier one.
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

/** What the event `drift` of a manager reports. */
export interface Drift {
  readonly kind: DriftKind;
  /** The grant's id; null if the drift concerns no single grant. */
  readonly uid: string | null;
  /** A description for people. */
  readonly what: string;
  readonly repaired: boolean;
  /**
   * True if it was repaired twice and differs again. It is then left alone until it is right again,
   * or until the grant changes.
   */
  readonly contested: boolean;
}

/**
 * What the event `hotplug` of a manager reports: CPUs of a grant of this process went offline or
 * came back, or the kubelet took CPUs from a grant with `onTaken`.
 */
export interface Hotplug {
  readonly uid: string;
  /** The CPUs that the grant runs on now. */
  readonly cpus: CpuSet;
  readonly lost: CpuSet;
  /** The CPUs that replace `lost`. */
  readonly substitutes: CpuSet;
  /**
   * The CPUs of `lost` without a substitute. On record they still belong to the grant, which gets
   * them back when they are online again.
   */
  readonly revoked: CpuSet;
  readonly returned: CpuSet;
  /** True if the grant has no CPU for now: its threads in this process wait in the shared pool. */
  readonly isParked: boolean;
  /** Why there is no substitute. */
  readonly error: NumalignError | null;
}

/** The result of one round of reconciling. */
export interface ReconcileReport {
  /** The number of things compared: threads, cgroups, members. */
  readonly checked: number;
  readonly repaired: number;
  /** What is left alone for now because another program keeps changing it back. */
  readonly contested: number;
  /** Masks set, writes to cgroups, and commits; 0 if all was as it should be. */
  readonly writes: number;
  /** What was not as it should be, except what was already contested. */
  readonly drifts: readonly Drift[];
  readonly hotplug: readonly Hotplug[];
}

/** A difference from what should be. */
export interface Found {
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
  readonly found: readonly Found[];
}

export function together(comparisons: readonly Comparison[]): Comparison {
  return {
    checked: comparisons.reduce((sum, { checked }) => sum + checked, 0),
    found: comparisons.flatMap(({ found }) => found),
  };
}
