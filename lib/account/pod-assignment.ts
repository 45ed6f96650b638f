// PodAssignment: what a pod holds, as it is on record. Pure.
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import type { MemoryBlock } from './booked-memory.js';
import type { QuietRequest } from './quiet/quiet-request.js';

/** Members of the file that this version does not know; kept when it is rewritten. */
export type UnknownFields = Readonly<Record<string, unknown>>;

/** One CPU as it was when the state was written: [cpu, core, package, node]. */
export type CpuIdentity = readonly [cpu: number, core: number, socket: number, node: number];

export interface DeviceAssignment {
  readonly id: string;
  /** null: the device reports no topology. */
  readonly nodes: readonly number[] | null;
}

/** What may be used again by a later container of the pod once this one has ended. */
export interface Reusable {
  readonly cpus: CpuSet;
  readonly memory: readonly MemoryBlock[];
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/**
 * Where a container runs: on CPUs of its own, in the shared pool of its pod, or in that of the
 * machine.
 */
export const ISOLATIONS = ['container', 'pod', 'host'] as const;

export type Isolation = (typeof ISOLATIONS)[number];

export interface ContainerAssignment {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  readonly started: boolean;
  /** Resource name to amount, as asked for: `cpu` in millicores, everything else in whole units. */
  readonly request: Readonly<Record<string, number>>;
  readonly isolation: Isolation;
  /**
   * The CPUs it runs on: its own, or those that it shares with other containers of the pod; empty
   * for a container of the machine's shared pool.
   */
  readonly cpus: CpuSet;
  /** CPUs that are held but not run on (SMT siblings). */
  readonly held: CpuSet;
  readonly hint: TopologyHint;
  readonly memory: readonly MemoryBlock[];
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
  readonly reusable: Reusable;
  readonly unknown: UnknownFields;
}

/**
 * A cgroup as an owner: it lives as long as this very folder exists and a process is in it or below
 * it.
 */
export interface CgroupIdentity {
  /** The cgroup's folder, as whoever admitted it sees it. */
  readonly path: string;
  /** The device number of its file system, decimal: the hierarchy that it is in. */
  readonly device: string;
  /**
   * The inode of the folder, decimal: another cgroup that comes under the same path has another.
   */
  readonly inode: string;
  /** The cgroup namespace in which `path` is meant, as /proc/self/ns/cgroup reads. */
  readonly namespace: string;
}

/**
 * Who a pod belongs to. `pid` and `command` are for people: only the lock of owners/<uuid> tells
 * whether a process lives.
 */
export interface OwnerRecord {
  readonly kind: 'process' | 'cgroup' | 'persistent';
  /** Of the owner's file. */
  readonly uuid: string;
  readonly pid: number | null;
  readonly command: string | null;
  /** Of a cgroup only. */
  readonly cgroup: CgroupIdentity | null;
  readonly unknown: UnknownFields;
}

/** How strongly a grant can be kept from others, the weakest first. */
export const ENFORCEMENT_LEVELS = ['recorded', 'members', 'cpuset', 'partition', 'isolated'] as const;

export type EnforcementLevel = (typeof ENFORCEMENT_LEVELS)[number];

/** Names of the kernel's errors by container; undefined in place of none. */
export type MemoryRefusals = Readonly<Record<string, string>>;

/** CPUs that a container is about to have instead of its own. Until it is done both are held. */
export interface UpcomingCpus {
  readonly container: string;
  readonly cpus: CpuSet;
  readonly held: CpuSet;
  /** The uuid of the process that changes them: once it is dead, the change is off. */
  readonly by: string;
  /** The grant moves, or makes itself larger or smaller; undefined: its owner resizes it. */
  readonly move?: Move | undefined;
}

/** Of a grant that makes room for somebody else, or grows and shrinks by itself. */
export interface Move {
  /** The uid of the request that asks for the room; what the grant leaves is kept for it. */
  readonly for: string;
  /** Wall-clock time in ISO 8601: by then the owner has answered, or it does not move. */
  readonly deadline: string;
  /**
   * What it will have. null: it has that already, and `cpus` and `held` are what it leaves once its
   * pages have, too.
   */
  readonly target: Pick<PodAssignment, 'booking' | 'containers'> | null;
  /** Why the owner does not move it: the code of an error. */
  readonly refusal: string | null;
}

/** On what terms a grant may be moved to make room for others. */
export interface MoveConsent {
  /** null: as often as it takes. */
  readonly maxPerHour: number | null;
  /** How long its owner has to answer. */
  readonly noticeMs: number;
  /** NUMA nodes that it never moves to. */
  readonly exclude: NodeSet;
}

/** Of a grant that grows and shrinks by itself. */
export interface Elasticity {
  /** How many CPUs it has at least and at most. */
  readonly min: number;
  readonly max: number;
  /** Of two such grants one of twice the weight has twice as many. */
  readonly weight: number;
}

/**
 * What is booked for a pod as a whole. Its containers have parts of it: exclusive ones their own,
 * all others the rest together. Init containers have what later ones have too.
 */
export interface PodBooking {
  /** Empty: only memory is booked. */
  readonly cpus: CpuSet;
  /** CPUs that are held but not run on (SMT siblings). */
  readonly held: CpuSet;
  readonly memory: readonly MemoryBlock[];
}

/** What a pod asks for as a whole: amounts as in `request` of a container. */
export interface PodAmounts {
  readonly requests: ContainerAssignment['request'];
  readonly limits: ContainerAssignment['request'];
}

export interface PodAssignment {
  /** The grant's id. */
  readonly uid: string;
  readonly name: string;
  /**
   * Of a pod that was admitted; undefined of a grant that was acquired, and in states of the first
   * versions.
   */
  readonly namespace?: string | undefined;
  /** In the order in which they were admitted. */
  readonly containers: readonly ContainerAssignment[];
  /** undefined: it said nothing of itself as a whole. */
  readonly resources?: PodAmounts | undefined;
  /** null: what its containers have is booked one by one. */
  readonly booking: PodBooking | null;
  readonly policy: string;
  readonly scope: string;
  /** Placement options that were in force, by the kubelet's names. */
  readonly options: Readonly<Record<string, boolean>>;
  readonly owner: OwnerRecord;
  /** Millicores of the shared pool that are booked for it beside its CPUs; undefined: none. */
  readonly mixed?: number | undefined;
  /** undefined: the number of its CPUs is fixed. */
  readonly elastic?: Elasticity | undefined;
  /** What it keeps away from its CPUs besides other threads; undefined: nothing. */
  readonly quiet?: QuietRequest | undefined;
  /** undefined: it is never moved. */
  readonly movable?: MoveConsent | undefined;
  /** When it was moved within the last hour, in ISO 8601. */
  readonly moves?: readonly string[] | undefined;
  /**
   * `target`: the cgroup or process that it is enforced on, for people. `memory`: why the kernel has
   * refused the memory nodes of its groups, by container.
   */
  readonly enforcement: {
    readonly level: EnforcementLevel;
    readonly target: string | null;
    readonly memory?: MemoryRefusals | undefined;
  };
  /** Announced before a resize or a move is carried out. */
  readonly upcoming: UpcomingCpus | null;
  /** Whoever shows this token becomes the owner. */
  readonly transfer: string | null;
  /** The uuid of the owner before, as long as its threads may still be on the CPUs. */
  readonly formerOwner: string | null;
  /** Wall-clock time in ISO 8601. */
  readonly admittedAt: string;
  readonly unknown: UnknownFields;
}

/**
 * Of a pod that has just been placed: nobody keeps others off yet but the record, and nothing is
 * about to change.
 */
export const JUST_PLACED = Object.freeze({
  enforcement: Object.freeze({ level: 'recorded', target: null }),
  upcoming: null,
  transfer: null,
  formerOwner: null,
} as const);
