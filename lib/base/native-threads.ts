// The addon's types of threads.
import type { Words } from './words.js';

export interface NativeMove {
  tid: number;
  before: Words;
  now: Words;
  errno: number;
  /** With {@link Native.undoPin}: its choice before it was pinned. */
  earlier?: Words;
}

export interface NativePinOutcome {
  moved: NativeMove[];
  unmovable: NativeMove[];
}

/** The kinds of threads, in the order of the core's enumerators. */
export const THREAD_ROLES = ['main', 'worker', 'pool', 'v8', 'other'] as const;
/**
 * The role of a thread of this process. `main` runs the main JavaScript thread; {@link
 * ThreadInfo.role} says what `worker`, `pool` and `v8` are; `other` is every other thread.
 */
export type ThreadRole = (typeof THREAD_ROLES)[number];

/** A scheduling class by the kernel's numbers. */
export interface NativeScheduling {
  policy: number;
  priority: number;
  nice: number;
  resetOnFork: boolean;
}

/** A NUMA memory policy by the kernel's numbers; several preferred nodes are mode 1 too. */
export interface NativePolicy {
  mode: number;
  flags: number;
  nodes: Words;
}

export interface NativePlacement {
  /** Node, bytes, node, bytes, and so on. */
  byNode: Float64Array;
  absent: number;
  unknown: number;
  source: 'move_pages' | 'numa_maps' | '';
  errno: number;
  /** Of ordinary pages. */
  pageBytes: number;
}

/**
 * A thread whose mask is not its own choice: what it has chosen, what it was given instead, and of
 * what (the kernel leaves out what its cpuset does not have).
 */
export interface NativeMemberThread {
  tid: number;
  chosen: Words;
  applied: Words;
  asked: Words;
  /** The mask that it had on the CPUs of a grant before the kernel may have reset it. */
  place?: Words;
}

/** The choice of a thread, with its mask as `place`. */
export interface NativeMemberChoice extends NativeMemberThread {
  place: Words;
  /** It may use all of its cpuset: the kernel opens to it by itself what is given back. */
  isFree: boolean;
}

export interface NativeConfinement {
  threads: NativeMemberThread[];
  /**
   * Still on CPUs that they must leave. `errno` 0: the kernel did something else than it was told.
   */
  stuck: { tid: number; errno: number; cpus: Words }[];
  moved: number;
  /** In a dry run: true if this process may not move some of the threads. */
  isRefused: boolean;
  /** In a dry run: the masks of the threads that would move or are stuck, each once. */
  places: Words[];
}

/** The owner of pins. An empty `grant` is not remembered. */
interface PinCallOwner {
  readonly grant: string;
  readonly owner: string;
  /** True if pins for other grants give way. */
  readonly replace: boolean;
}

/** A pin of threads to CPUs. */
export interface PinCall extends PinCallOwner {
  /** 0 the calling thread, -1 every thread of the process. */
  readonly tid: number;
  readonly cpus: Words;
  /** Of the grant: its own name, or '' for what no part has. */
  readonly part: string;
}

/** A pin of every thread of the process by its role. */
export interface PlaceCall extends PinCallOwner {
  /** By {@link THREAD_ROLES}; undefined: left alone. */
  readonly cpus: readonly (Words | undefined)[];
  /** By role: whether each thread has one CPU. */
  readonly oneEach: readonly (boolean | undefined)[];
  /** By role: as {@link PinCall.part}. */
  readonly parts: readonly (string | undefined)[];
  /** By role: all CPUs of the part, or what the grant has that no part has. */
  readonly granted: readonly (Words | undefined)[];
}

/** A scheduling class for a thread. */
export interface ScheduleCall {
  readonly tid: number;
  /** 0 for an ordinary thread. */
  readonly priority: number;
  readonly nice: number;
  readonly grant: string;
}

/** A question about what the threads of a process have chosen. */
export interface MemberChoicesCall {
  readonly pid: number;
  readonly known: readonly NativeMemberThread[];
  /** Threads whose choice is in `known` though they were pinned. */
  readonly unpinned: readonly number[];
  /** CPUs that are the process's own. */
  readonly grants: readonly Words[];
  /** The CPUs of its cpuset; empty if unknown. */
  readonly limit: Words;
  /** The choice of a thread that may use all of its cpuset. */
  readonly all: Words;
}

/** The CPUs that the masks of a process's threads avoid. */
export interface ConfineMemberCall {
  readonly pid: number;
  /** The answer of the last call for it. */
  readonly known: readonly NativeMemberThread[];
  /** Other threads may not be here. */
  readonly taken: Words;
  /** The CPUs of threads that have chosen nothing else. */
  readonly pool: Words;
  /** CPUs that are the process's own: threads within one of them stay. */
  readonly grants: readonly Words[];
  /** Threads whose choice is in `known` though they were pinned. */
  readonly unpinned: readonly number[];
  /** No thread gets CPUs that it has not now. */
  readonly onlyNarrow: boolean;
  /** Tells what it would do, and does nothing. */
  readonly dryRun: boolean;
  /** The CPUs of its cpuset; empty if unknown. */
  readonly limit: Words;
}
