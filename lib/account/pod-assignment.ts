// PodAssignment: what a pod holds, as on record. Pure.
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import type { MemoryBlock } from './booked-memory.js';
import { BY_RECORD, type EnforcementLevel } from './levels.js';

/** Members of the file that this version does not know. Rewriting the file keeps them. */
export type UnknownFields = Readonly<Record<string, unknown>>;

/** One CPU when the state was written: [cpu, core, package, node]. */
export type CpuIdentity = readonly [cpu: number, core: number, socket: number, node: number];

/** A granted device. */
export interface DeviceAssignment {
  /** The id under which the device is registered, such as a PCI address. */
  readonly id: string;
  /** Its NUMA nodes; null if the device reports none. */
  readonly nodes: readonly number[] | null;
}

/** What a later container of the pod may use again after this one has ended. */
export type Reusable = Pick<ContainerAssignment, 'cpus' | 'memory' | 'devices'>;

/**
 * Where a container runs: on its own CPUs, in its pod's shared pool, or in the machine's shared
 * pool.
 */
export const ISOLATIONS = ['container', 'pod', 'host'] as const;

export type Isolation = (typeof ISOLATIONS)[number];

export interface ContainerAssignment {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  readonly started: boolean;
  /** Resource name to requested amount: `cpu` in millicores, all others in whole units. */
  readonly request: Readonly<Record<string, number>>;
  readonly isolation: Isolation;
  /**
   * The CPUs it runs on: its own, or those that it shares with other containers of the pod. Empty
   * for a container in the machine's shared pool.
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
 * A cgroup as an owner. It lives while this very folder exists and a process is in it or below it.
 */
export interface CgroupIdentity {
  /** The cgroup's folder, as the admitting process sees it. */
  readonly path: string;
  /** The decimal device number of its file system, which identifies the hierarchy. */
  readonly device: string;
  /** The decimal inode of the folder. A later cgroup at the same path has another inode. */
  readonly inode: string;
  /** The cgroup namespace in which `path` holds, as /proc/self/ns/cgroup reads. */
  readonly namespace: string;
}

/**
 * The owner of a pod. `pid` and `command` are for people: only the lock of owners/<uuid> shows
 * whether a process lives.
 */
export interface OwnerRecord {
  readonly kind: 'process' | 'cgroup' | 'persistent';
  /** The uuid of the owner's file. */
  readonly uuid: string;
  readonly pid: number | null;
  readonly command: string | null;
  /** Set only for a cgroup. */
  readonly cgroup: CgroupIdentity | null;
  readonly unknown: UnknownFields;
}

/** Names of the kernel's errors by container; undefined instead of an empty object. */
export type MemoryRefusals = Readonly<Record<string, string>>;

/** The CPUs of a place: those that run a pod's threads, and those held idle beside them. */
export interface PlaceCpus {
  readonly cpus: CpuSet;
  readonly held: CpuSet;
}

/**
 * CPUs that a container gets instead of its own. Both are held until the change is done. A move has
 * them throughout: once it has begun, the containers are on record with them.
 */
export interface UpcomingCpus extends PlaceCpus {
  readonly container: string;
  /** The uuid of the process that makes the change. If it dies, the change is off. */
  readonly by: string;
  /** Set if the grant moves, grows or shrinks; undefined if its owner resizes it. */
  readonly move?: RecordedMove | undefined;
}

/** The change of a grant that makes room for another, or grows and shrinks by itself. */
export interface RecordedMove {
  /** The uid of the request that needs the room. What the grant leaves is kept for that request. */
  readonly for: string;
  /** Wall-clock time in ISO 8601: without the owner's answer by then, the grant does not move. */
  readonly deadline: string;
  /** What the grant will have. null: the move has begun, and the grant has that already. */
  readonly target: Pick<PodAssignment, 'booking' | 'containers'> | null;
  /** Why the owner does not move it: an error code. */
  readonly refusal: string | null;
}

/** The terms on which a grant may be moved to make room for others. */
export interface MoveConsent {
  /** null: no limit. */
  readonly maxPerHour: number | null;
  /** How long its owner has to answer. */
  readonly noticeMs: number;
  /** NUMA nodes that it never moves to. */
  readonly exclude: NodeSet;
}

/** The limits of a grant that grows and shrinks by itself. */
export interface Elasticity {
  /** The least number of CPUs that it shrinks to. */
  readonly min: number;
  /** The greatest number of CPUs that it grows to. */
  readonly max: number;
  /** A grant of twice the weight has twice as many CPUs. */
  readonly weight: number;
}

/** The parts of {@link RequestOptions.quiet}, by name. */
export const QUIET_PARTS = ['interrupts', 'workqueues', 'packets', 'idle', 'frequency', 'cache'] as const;

/** The parts of {@link RequestOptions.quiet}; {@link QuietOptions} says what each of them does. */
export type QuietPart = (typeof QUIET_PARTS)[number];

/**
 * The part of each L3 cache that a grant has for itself: ways, or a percentage of them, rounded up.
 */
export type CacheShare = { readonly ways: number } | { readonly percent: number };

/** What a grant keeps off its CPUs besides other threads. */
export interface QuietRequest {
  readonly interrupts: boolean;
  readonly workqueues: boolean;
  readonly packets: boolean;
  /** Microseconds that an idle state may take to wake up; null: no limit requested. */
  readonly idle: { readonly maxLatency: number } | null;
  readonly frequency: boolean;
  /** null: not requested. */
  readonly cache: CacheShare | null;
  /** How many of its CPUs kernel work may still use; undefined: none. */
  readonly housekeeping?: number | undefined;
}

/**
 * What is booked for a pod as a whole. Exclusive containers have their own parts of it; all others
 * share the rest. Init containers use what later ones have too.
 */
export interface PodBooking {
  /** Empty if only memory is booked. */
  readonly cpus: CpuSet;
  /** CPUs that are held but not run on (SMT siblings). */
  readonly held: CpuSet;
  /** Memory and hugepages, each type on NUMA nodes that share it. */
  readonly memory: readonly MemoryBlock[];
}

/** A pod's requests as a whole, with amounts like those of a container's `request`. */
export interface PodAmounts {
  readonly requests: ContainerAssignment['request'];
  readonly limits: ContainerAssignment['request'];
}

export interface PodAssignment {
  /** The grant's id. */
  readonly uid: string;
  readonly name: string;
  /**
   * Set for an admitted pod; undefined for an acquired grant, and in states of the first versions.
   */
  readonly namespace?: string | undefined;
  /** In the order of their admission. */
  readonly containers: readonly ContainerAssignment[];
  /** undefined: the pod has no pod-level resources. */
  readonly resources?: PodAmounts | undefined;
  /** null: its containers are booked one by one. */
  readonly booking: PodBooking | null;
  readonly policy: string;
  readonly scope: string;
  /** Placement options in force at admission, by the kubelet's names. */
  readonly options: Readonly<Record<string, boolean>>;
  readonly owner: OwnerRecord;
  /** Millicores of the shared pool that it books beside its CPUs; undefined: none. */
  readonly mixed?: number | undefined;
  /** undefined: its number of CPUs is fixed. */
  readonly elastic?: Elasticity | undefined;
  /** What it keeps off its CPUs besides other threads; undefined: nothing. */
  readonly quiet?: QuietRequest | undefined;
  /** undefined: it is never moved. */
  readonly movable?: MoveConsent | undefined;
  /** The times of its moves within the last hour, in ISO 8601. */
  readonly moves?: readonly string[] | undefined;
  /**
   * `fallenFrom`: the level before other programs lowered it; undefined: they have not. `target`:
   * the cgroup or process that enforces it, for people. `memory`: the kernel's refusals of memory
   * nodes, by container.
   */
  readonly enforcement: {
    readonly level: EnforcementLevel;
    readonly fallenFrom?: EnforcementLevel | undefined;
    readonly target: string | null;
    readonly memory?: MemoryRefusals | undefined;
  };
  /** Announced before a resize or a move is carried out. */
  readonly upcoming: UpcomingCpus | null;
  /**
   * What a move that has begun leaves behind, once pages and threads have followed; undefined: no
   * move has begun.
   */
  readonly former?: PlaceCpus | undefined;
  /** The process that presents this token becomes the owner. */
  readonly transfer: string | null;
  /** The uuid of the former owner, while its threads may still be on the CPUs. */
  readonly formerOwner: string | null;
  /** Wall-clock time in ISO 8601. */
  readonly admittedAt: string;
  readonly unknown: UnknownFields;
}

/**
 * The members of a newly placed pod: only the record protects it so far, and no change is planned.
 */
export const JUST_PLACED = Object.freeze({
  enforcement: Object.freeze({ level: BY_RECORD, target: null }),
  upcoming: null,
  transfer: null,
  formerOwner: null,
} as const);
