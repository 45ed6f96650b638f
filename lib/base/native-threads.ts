// The addon's types of threads.
import type { Words } from './words.js';

export interface NativeMove {
  tid: number;
  before: Words;
  now: Words;
  errno: number;
  /** With {@link Native.undoPin}: the thread's choice before it was pinned. */
  earlier?: Words;
}

export interface NativePinOutcome {
  moved: NativeMove[];
  unmovable: NativeMove[];
}

/** Threads that have left a grant. */
export interface NativeDeparture extends NativePinOutcome {
  /** Brings those that have not ended back, with their scheduling classes. Needs no file. */
  comeBack(): void;
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
  /** The size of an ordinary page. */
  pageBytes: number;
}

/** A thread whose mask is not its own choice. */
export interface NativeMemberThread {
  tid: number;
  /** The mask that the thread has chosen. */
  chosen: Words;
  /** The mask that it has instead. */
  applied: Words;
  /** The mask that numalign requested: the kernel removes CPUs outside of the thread's cpuset. */
  asked: Words;
}

/** What became of the threads of a process, or would. */
export interface NativeConfinement {
  /**
   * The record of the threads afterwards; empty if there is nothing to record. In a plan that has
   * something to do, of what is known now too.
   */
  record: string;
  /**
   * Threads still on CPUs that they must leave. `errno` 0: the kernel set another mask than asked.
   */
  stuck: { tid: number; errno: number; cpus: Words }[];
  moved: number;
  /**
   * Gives threads that have moved their masks from before, unless they have others by now. Needs no
   * file. Returns the record of what was known before; undefined if all have other masks.
   */
  putBack?: (() => string | undefined) | undefined;
}

export interface NativeMemberPlan extends NativeConfinement {
  /** True if this process may not move some of the threads. */
  isRefused: boolean;
  /**
   * The masks of the threads that would move or are stuck, each once, as far as they are within
   * `granted`.
   */
  places: Words[];
}

/** The owner of pins. The addon does not record pins with an empty `grant`. */
interface PinCallOwner {
  readonly grant: string;
  readonly owner: string;
  /** True to replace pins for other grants. */
  readonly replace: boolean;
}

/** Asks for a pin of threads to CPUs. */
export interface PinCall extends PinCallOwner {
  /** 0: the calling thread; -1: every thread of the process. */
  readonly tid: number;
  readonly cpus: Words;
  /** The name of a part of the grant, or '' for the CPUs outside of all parts. */
  readonly part: string;
}

/** Asks for a pin of every thread of the process by its role. */
export interface PlaceCall extends PinCallOwner {
  /** By {@link THREAD_ROLES}; undefined leaves the role's threads alone. */
  readonly cpus: readonly (Words | undefined)[];
  /** By role: true if each thread gets one CPU. */
  readonly oneEach: readonly (boolean | undefined)[];
  /** By role: the same as {@link PinCall.part}. */
  readonly parts: readonly (string | undefined)[];
  /** By role: all CPUs of the part, or the grant's CPUs outside of all parts. */
  readonly granted: readonly (Words | undefined)[];
}

/** Asks for a scheduling class for a thread. */
export interface ScheduleCall {
  readonly tid: number;
  /** 0 for an ordinary thread. */
  readonly priority: number;
  readonly nice: number;
  readonly grant: string;
}

/** What is known of the threads of a process. */
interface KnownThreadsCall {
  readonly pid: number;
  /** The name of the process in its record. */
  readonly process: string;
  /** The record; empty: none. What is not a record of this process counts as none. */
  readonly known: string;
  /** True if `known` is from {@link Native.askedMasks}. */
  readonly isAsked: boolean;
  /** Threads whose masks others changed, and what they have chosen. */
  readonly unpinned: readonly { readonly tid: number; readonly earlier: Words }[];
  /** CPUs that are the process's own: threads within one of its grants stay. */
  readonly grants: readonly Words[];
  /** The CPUs of its cpuset; empty if unknown. */
  readonly limit: Words;
}

/** Asks which masks the threads of a process have chosen. */
export interface AskedMasksCall extends KnownThreadsCall {
  /** The choice of a thread that may use all of its cpuset. */
  readonly all: Words;
}

/** Asks to keep the threads of a process off some CPUs by their masks. */
export interface ConfineMemberCall extends KnownThreadsCall {
  /** CPUs that the threads must leave. */
  readonly taken: Words;
  /** The CPUs of threads that have chosen nothing. */
  readonly pool: Words;
  /** No thread gets CPUs that it does not have now. */
  readonly onlyNarrow: boolean;
  /** CPUs of grants: see {@link NativeMemberPlan.places}. */
  readonly granted: Words;
}
