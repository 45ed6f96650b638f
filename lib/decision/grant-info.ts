// GrantInfo: the public description of a grant on record.
import type { Elasticity, EnforcementLevel, PodAssignment, PodBooking } from '../account/pod-assignment.js';
import { devicesOf, type Holding, memoryOf, poolOf, presentCpus } from '../account/pod-holdings.js';
import { MILLI } from '../input/values/quantity.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Flag } from './flags/flags.js';

interface Unbalanced {
  readonly unbalanced: CpuSet;
}

/** The state of one grant. */
export interface GrantInfo extends Holding {
  readonly uid: string;
  readonly name: string;
  /** Booked for the pod as a whole; null if its containers are booked one by one. */
  readonly booking: PodBooking | null;
  /**
   * The part of the shared pool that the grant books beside its CPUs, in CPUs, for example 0.5;
   * else 0.
   */
  readonly mixed: number;
  /**
   * The limits within which it grows and shrinks by itself; null if its number of CPUs is fixed.
   */
  readonly elastic: Elasticity | null;
  /** The NUMA nodes of the CPUs. */
  readonly numaNodes: NodeSet;
  /** See {@link Grant.isIsolated}. */
  readonly isIsolated: boolean;
  readonly enforcement: EnforcementLevel;
  /**
   * The path of the cgroup that enforces the grant, made when something runs in it; null if there
   * is none.
   */
  readonly cgroup: string | null;
  readonly owner: {
    readonly kind: 'process' | 'cgroup' | 'persistent';
    readonly pid: number | null;
    readonly command: string | null;
    /** The folder of the owning cgroup, as the process that named it sees it; else null. */
    readonly cgroup: string | null;
  };
  /** False: the owner is dead, and the next transaction takes the CPUs back. */
  readonly alive: boolean;
  /** The CPUs that an announced resize gives it; else null. */
  readonly upcoming: CpuSet | null;
  /**
   * What no longer holds, because the machine or its settings have changed. The grant stays as it
   * is.
   */
  readonly flags: readonly Flag[];
  /** Wall-clock time in ISO 8601. */
  readonly admittedAt: string;
}

/**
 * True if a pod has isolated CPUs: it took them as isolated, or the kernel now balances no load
 * over them (`unbalanced`).
 */
export function isIsolated(pod: PodAssignment, { unbalanced }: Unbalanced): boolean {
  const isTaken = poolOf(pod) === 'isolated' || pod.enforcement.level === 'isolated';
  return isTaken || presentCpus(pod).intersects(unbalanced);
}

/** The part of the shared pool that a pod books beside its CPUs, in CPUs. */
export const mixedCpus = ({ mixed = 0 }: Pick<PodAssignment, 'mixed'>): number => mixed / MILLI;

/** The description of a grant on record. */
export function grantInfo(
  pod: PodAssignment,
  topology: Topology,
  alive: boolean,
  flags: readonly Flag[],
  present: Unbalanced,
): GrantInfo {
  const cpus = presentCpus(pod);
  const { kind, pid, command, cgroup } = pod.owner;
  return {
    uid: pod.uid,
    name: pod.name,
    cpus,
    mixed: mixedCpus(pod),
    elastic: pod.elastic ?? null,
    numaNodes: topology.nodesOf(cpus),
    booking: pod.booking,
    memory: memoryOf(pod),
    devices: devicesOf(pod),
    isIsolated: isIsolated(pod, present),
    enforcement: pod.enforcement.level,
    cgroup: pod.enforcement.target,
    owner: { kind, pid, command, cgroup: cgroup?.path ?? null },
    alive,
    upcoming: pod.upcoming?.cpus ?? null,
    flags,
    admittedAt: pod.admittedAt,
  };
}
