// GrantInfo: the public facts of a grant on record.

import { type EnforcementLevel, LEVELS } from '../account/levels.js';
import type { Elasticity, MoveConsent, PodAssignment, PodBooking } from '../account/pod-assignment.js';
import { allCpus, devicesOf, type Holding, memoryOf, poolOf, presentCpus } from '../account/pod-holdings.js';
import { MILLI } from '../input/values/quantity.js';
import { CpuSet, type NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Flag } from './flags/flags.js';

interface Unbalanced {
  readonly unbalanced: CpuSet;
}

/** A grant on record, of any process. */
export interface GrantInfo extends Holding {
  /** Identifies the grant: {@link Manager.release} and {@link Manager.grant} take it. */
  readonly uid: string;
  /** The name that was requested, else the uid; of a pod its name. */
  readonly name: string;
  /** What is booked for the pod as a whole; null if its containers are booked one by one. */
  readonly booking: PodBooking | null;
  /** The CPUs that a `mixed` grant books in the shared pool, such as 0.5; else 0. */
  readonly mixed: number;
  /** The range of CPUs in which it grows and shrinks by itself; null if their number is fixed. */
  readonly elastic: Elasticity | null;
  /** The NUMA nodes of `cpus`. */
  readonly numaNodes: NodeSet;
  /** See {@link Grant.isIsolated}. */
  readonly isIsolated: boolean;
  /** The enforcement level. */
  readonly enforcement: EnforcementLevel;
  /** The path of its cgroup, which is made when something runs in it; null without one. */
  readonly cgroup: string | null;
  /**
   * The grant ends with it. `kind` is `process`, `cgroup` or `persistent` (ends only by a release).
   * `pid` (in its own pid namespace) and `command` (its program) belong to a process, `cgroup` (its
   * folder) to a cgroup; they are null otherwise.
   */
  readonly owner: {
    readonly kind: 'process' | 'cgroup' | 'persistent';
    readonly pid: number | null;
    readonly command: string | null;
    /** The folder of the cgroup that owns it, as the admitting process saw it; else null. */
    readonly cgroup: string | null;
  };
  /** False: the owner is dead, and the next transaction takes the grant back. */
  readonly alive: boolean;
  /** The terms on which it may move to make room for other requests; null if it never moves. */
  readonly movable: MoveConsent | null;
  /**
   * The CPUs that it will have, while a resize or a move is under way; else null. A move that has
   * begun has them in `cpus` too: threads and memory are on their way there.
   */
  readonly upcoming: CpuSet | null;
  /** The CPUs that it keeps from others until a move that has begun is done; else null. */
  readonly former: CpuSet | null;
  /** What does not hold any more, see {@link Flag}. */
  readonly flags: readonly Flag[];
  /** When it was admitted, in ISO 8601. */
  readonly admittedAt: string;
}

/**
 * True if a pod has isolated CPUs: it took them as isolated, or the kernel now balances no load
 * over them (`unbalanced`).
 */
export function isIsolated(pod: PodAssignment, { unbalanced }: Unbalanced): boolean {
  const isTaken = poolOf(pod) === 'isolated' || LEVELS[pod.enforcement.level].isolatesCpus;
  return isTaken || presentCpus(pod).intersects(unbalanced);
}

/** All CPUs that grants keep from others: also those that a change under way brings or leaves. */
export function cpusOfGrants(grants: readonly Pick<GrantInfo, 'cpus' | 'upcoming' | 'former'>[]): CpuSet {
  const sets = grants.flatMap(({ cpus, upcoming, former }) => [cpus, upcoming, former]);
  return sets.reduce<CpuSet>((all, cpus) => (cpus ? all.union(cpus) : all), CpuSet.EMPTY);
}

/** The part of the shared pool that a pod books beside its CPUs, in CPUs. */
export const mixedCpus = ({ mixed = 0 }: Pick<PodAssignment, 'mixed'>): number => mixed / MILLI;

/** The description of a grant on record. */
export function grantInfo(
  pod: PodAssignment,
  { topology, present }: { readonly topology: Topology; readonly present: Unbalanced },
  { alive, flags }: Pick<GrantInfo, 'alive' | 'flags'>,
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
    former: pod.former ? allCpus(pod.former) : null,
    flags,
    admittedAt: pod.admittedAt,
  };
}
