// What the addon tells of threads, and takes for them.
import type { Words } from './words.js';

export interface NativeMove {
  tid: number;
  before: Words;
  now: Words;
  errno: number;
  /** By {@link Native.undoPin}: what it had chosen before it was pinned. */
  earlier?: Words;
}

export interface NativePinOutcome {
  moved: NativeMove[];
  unmovable: NativeMove[];
}

/** What a thread of this process is, in the order of the core's enumerators. */
export const THREAD_ROLES = ['main', 'worker', 'pool', 'v8', 'other'] as const;
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

export interface NativeConfinement {
  threads: NativeMemberThread[];
  /**
   * Still on CPUs that they must leave. `errno` 0: the kernel did something else than it was told.
   */
  stuck: { tid: number; errno: number; cpus: Words }[];
  moved: number;
  /** Of a dry run: a thread is to be moved that this process may not move. */
  isRefused: boolean;
}
