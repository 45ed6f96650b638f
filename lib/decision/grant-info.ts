// GrantInfo: what is told of a grant on record.
import type {
  Elasticity,
  EnforcementLevel,
  MoveConsent,
  PodAssignment,
  PodBooking,
} from '../account/pod-assignment.js';
import { devicesOf, type Holding, memoryOf, poolOf, presentCpus } from '../account/pod-holdings.js';
import { MILLI } from '../input/values/quantity.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Flag } from './flags/flags.js';

interface Unbalanced {
  readonly unbalanced: CpuSet;
}

/** What the state says of one grant. */
export interface GrantInfo extends Holding {
  readonly uid: string;
  readonly name: string;
  /** What is booked for the pod as a whole; null: its containers are booked one by one. */
  readonly booking: PodBooking | null;
  /** How much of the shared pool is booked for it beside its CPUs, in CPUs: 0.5, say; else 0. */
  readonly mixed: number;
  /** Between how many CPUs it grows and shrinks by itself; null: their number is fixed. */
  readonly elastic: Elasticity | null;
  /** Of the CPUs. */
  readonly numaNodes: NodeSet;
  /** As {@link Grant.isIsolated}. */
  readonly isIsolated: boolean;
  readonly enforcement: EnforcementLevel;
  /**
   * The cgroup by which it is enforced, as a path; made when something is to run in it. null where
   * there is none.
   */
  readonly cgroup: string | null;
  readonly owner: {
    readonly kind: 'process' | 'cgroup' | 'persistent';
    readonly pid: number | null;
    readonly command: string | null;
    /** The folder of a cgroup that owns it, as whoever named it sees it; else null. */
    readonly cgroup: string | null;
  };
  /** False: the owner is dead, and the next transaction takes the CPUs back. */
  readonly alive: boolean;
  /** On what terms it may be moved to make room for others; null: it never is. */
  readonly movable: MoveConsent | null;
  /** The CPUs that it is about to have instead, where a resize or a move is announced; else null. */
  readonly upcoming: CpuSet | null;
  /**
   * What of it does not hold any more, since the machine or its settings have changed. It stays as
   * it is.
   */
  readonly flags: readonly Flag[];
  /** Wall-clock time in ISO 8601. */
  readonly admittedAt: string;
}

/**
 * Whether a pod has isolated CPUs: taken as such, or such over which the kernel balances no load
 * (`unbalanced`) by now.
 */
export function isIsolated(pod: PodAssignment, { unbalanced }: Unbalanced): boolean {
  const isTaken = poolOf(pod) === 'isolated' || pod.enforcement.level === 'isolated';
  return isTaken || presentCpus(pod).intersects(unbalanced);
}

/** How much of the shared pool is booked for a pod beside its CPUs, in CPUs. */
export const mixedCpus = ({ mixed = 0 }: Pick<PodAssignment, 'mixed'>): number => mixed / MILLI;

/** What is told of a grant on record. */
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
    movable: pod.movable ?? null,
    upcoming: pod.upcoming?.cpus ?? null,
    flags,
    admittedAt: pod.admittedAt,
  };
}
