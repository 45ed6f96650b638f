// Tables as the addon gives them: rows of numbers, and the names of their columns.
import type { Words } from './words.js';

/** Columns of one CPU in {@link TopologyDescription.cpus}. */
export const CPU_COLUMNS = ['cpu', 'core', 'package', 'die', 'l3', 'node'] as const;
/** Columns of one pool of hugepages in {@link TopologyDescription.hugepages}. */
export const HUGEPAGE_COLUMNS = ['node', 'bytes', 'count'] as const;

/**
 * Columns of one thread in {@link NativeThreads.rows}; `role` counts through {@link THREAD_ROLES}.
 */
export const THREAD_COLUMNS = [
  ...(['pid', 'tid', 'startNs', 'processor', 'role'] as const),
  ...([
    'runTimeNs',
    'runDelayNs',
    'timeslices',
    'voluntarySwitches',
    'involuntarySwitches',
    'migrations',
  ] as const),
] as const;
/** Columns of one CPU in the rows of {@link Native.cpuActivity}. */
export const CPU_ACTIVITY_COLUMNS = [
  ...(['cpu', 'interrupts', 'deviceInterrupts', 'softirqs'] as const),
  ...(['busyNs', 'idleNs', 'stealNs', 'frequencyKHz'] as const),
] as const;
/**
 * Columns of one task in {@link NativeTasks.rows}; those from `isKernel` to `isConfined` are 0 or
 * 1.
 */
export const TASK_COLUMNS = [
  ...(['pid', 'tid', 'startNs', 'processor'] as const),
  ...(['isKernel', 'isBound', 'isRunnable', 'isConfined', 'runTimeNs'] as const),
] as const;

/** Threads that may run on some CPUs, a row each. NaN is what cannot be read. */
export interface NativeThreads {
  rows: Float64Array;
  /** Where each may run. */
  masks: Words[];
  /** When they were looked at, in nanoseconds since boot, as `startNs` counts. */
  bootNs: number;
}

/** Tasks that are on some CPUs, or were last, or are confined to them; a row each. */
export interface NativeTasks {
  rows: Float64Array;
  commands: string[];
  /** Of their processes and all above them: pid, parent, pid, parent, and so on. */
  parents: Float64Array;
  /** True if no process of the machine is hidden. */
  seesAll: boolean;
}

/**
 * A PCI device as it crosses the boundary. Empty texts and lists stand for what is unknown or not
 * there.
 */
export interface NativePciDevice {
  id: string;
  class: number;
  vendor: number;
  device: number;
  driver: string;
  names: string[];
  nodes: number[];
  parent: string;
}

/**
 * A machine in flat arrays. `memory` and `distances` go by `nodes`, which is ascending in what the
 * addon returns.
 */
export interface TopologyDescription {
  cpus: Int32Array;
  nodes: Int32Array;
  memory: Float64Array;
  /** Square, or empty where unknown. */
  distances: Uint32Array;
  hugepages: Float64Array;
  /** By id in what the addon returns. */
  devices: NativePciDevice[];
  possible: Words;
  isolated: Words;
  allowed: Words;
}

/**
 * Lists of CPUs that the kernel shows, in the order of the addon: isolcpus= (of the newest kernels isolated
 * partitions too); isolated partitions, in the root of cgroup v2; nohz_full=: no tick while one thread runs
 * there, but load is balanced over them all the same.
 */
export const CPU_LISTS = ['isolated', 'partitions', 'tickless'] as const;
export type CpuListName = (typeof CPU_LISTS)[number];

/**
 * A problem for {@link Native.findRepackings}, in rows of numbers; a mask of NUMA nodes takes two,
 * low and high. `lib/decision/repacking/problem-tables.ts` makes them.
 */
export interface RepackingTables {
  nodes: number;
  /** [the fewest CPUs of a unit, free CPUs by node...] */
  views: Float64Array;
  /** [view, node, CPUs, free CPUs, units] */
  cores: Float64Array;
  /** Of each type, by node: spare bytes, booked ones, the most that can be free. */
  memory: Float64Array;
  /** [mask, blocks] */
  groups: Float64Array;
  /**
   * Of the request's parts, then of the grants: [view, units, whether memory is one block, CPUs by
   * view..., bytes by type...]
   */
  demands: Float64Array;
  /** Of each part, whether it stays. */
  stays: Float64Array;
  /** [part, mask of CPUs, mask of memory] */
  places: Float64Array;
  /** Of each grant: bytes, CPUs. */
  costs: Float64Array;
  /** [grant, mask, whether its memory stays] */
  targets: Float64Array;
  /** Of each grant, by view and node. */
  cpus: Float64Array;
  /** [grant, view, core, CPUs] */
  shares: Float64Array;
  /** [grant, mask, type, bytes] */
  blocks: Float64Array;
}

/** Which repackings are looked for. */
export interface RepackingLimits {
  /** Exactly so many. */
  readonly moves: number;
  /** How many of them, in their order, are left out, and how many come at most. */
  readonly skip: number;
  readonly most: number;
  /** Steps of a search for more than two moves. */
  readonly budget: number;
}
