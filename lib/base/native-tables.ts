// The addon's tables: rows of numbers, and the names of their columns.
import type { Words } from './words.js';

/** Columns of one CPU in {@link TopologyDescription.cpus}. */
export const CPU_COLUMNS = ['cpu', 'core', 'package', 'die', 'l3', 'node', 'kind'] as const;
/** Columns of one pool of hugepages in {@link TopologyDescription.hugepages}. */
export const HUGEPAGE_COLUMNS = ['node', 'bytes', 'count'] as const;

/** What the memory of a NUMA node is, as the core numbers it. */
export const MEMORY_TIERS = ['dram', 'hbm', 'cxl', 'pmem', 'gpu', 'other'] as const;

/**
 * What the memory of a NUMA node is: `dram`, that of nodes with CPUs; on nodes without CPUs `hbm`
 * (faster), `cxl` (slower: CXL and other expanders), `pmem` (persistent), `gpu` (of a GPU), or `other`
 * (not known).
 */
export type MemoryTier = (typeof MEMORY_TIERS)[number];

/** What the addon counts of a thread. */
export const THREAD_COUNTERS = [
  'runTimeNs',
  'runDelayNs',
  'timeslices',
  'voluntarySwitches',
  'involuntarySwitches',
  'migrations',
] as const;
/**
 * Columns of one thread in {@link NativeThreads.rows}; `role` is an index of {@link THREAD_ROLES}.
 */
export const THREAD_COLUMNS = ['pid', 'tid', 'startNs', 'processor', 'role', ...THREAD_COUNTERS] as const;
/** What the addon counts of a CPU. */
export const CPU_COUNTERS = [
  'interrupts',
  'deviceInterrupts',
  'softirqs',
  'busyNs',
  'idleNs',
  'stealNs',
] as const;
/** Columns of one CPU in the rows of {@link Native.cpuActivity}. */
export const CPU_ACTIVITY_COLUMNS = ['cpu', ...CPU_COUNTERS, 'frequencyKHz'] as const;
/** Columns of one task in {@link NativeTasks.rows}; `isKernel` to `isConfined` are 0 or 1. */
export const TASK_COLUMNS = [
  ...(['pid', 'tid', 'startNs', 'processor'] as const),
  ...(['isKernel', 'isBound', 'isRunnable', 'isConfined', 'runTimeNs'] as const),
] as const;

/** Threads that may run on some CPUs, a row each. NaN for a value that cannot be read. */
export interface NativeThreads {
  rows: Float64Array;
  /** The affinity mask of each. */
  masks: Words[];
  /** The time of the reading, in nanoseconds since boot like `startNs`. */
  bootNs: number;
}

/** Tasks that run, or last ran, on some CPUs or are confined to them; a row each. */
export interface NativeTasks {
  rows: Float64Array;
  commands: string[];
  /** Of their processes and all ancestors: pid, parent, pid, parent, and so on. */
  parents: Float64Array;
  /** True if no process of the machine is hidden. */
  seesAll: boolean;
}

/** A PCI device as it crosses the boundary. Empty texts and lists: unknown, or none. */
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
 * A machine in flat arrays. `memory`, `tiers` (of {@link MEMORY_TIERS}) and `distances` are in the
 * order of `nodes`, which the addon returns ascending.
 */
export interface TopologyDescription {
  cpus: Int32Array;
  nodes: Int32Array;
  memory: Float64Array;
  tiers: Int32Array;
  /** Square, or empty if unknown. */
  distances: Uint32Array;
  hugepages: Float64Array;
  /** The addon returns them ordered by id. null: not read yet. */
  devices: NativePciDevice[] | null;
  possible: Words;
  isolated: Words;
  allowed: Words;
}

/**
 * Lists of CPUs that the kernel shows, in the order of the addon: `isolcpus=` (on the newest
 * kernels with isolated partitions); isolated partitions, in the root of cgroup v2; `nohz_full=`,
 * CPUs without a tick while one thread runs there, over which the kernel still balances load.
 */
export const CPU_LISTS = ['isolated', 'partitions', 'tickless'] as const;
export type CpuListName = (typeof CPU_LISTS)[number];

/**
 * A problem for {@link Native.findRepackings}, in rows of numbers; a mask of NUMA nodes takes two
 * numbers, low and high. `lib/decision/changes/problem-tables.ts` makes the tables.
 */
export interface RepackingTables {
  nodes: number;
  /** [the fewest CPUs of a unit, free CPUs by node...] */
  views: Float64Array;
  /** [view, node, CPUs, free CPUs, units] */
  cores: Float64Array;
  /** For each type, by node: spare bytes, booked bytes, the most bytes that can be free. */
  memory: Float64Array;
  /** [mask, blocks] */
  groups: Float64Array;
  /**
   * For the request's parts, then for the grants: [view, units, 1 if memory is one block, CPUs by
   * view..., bytes by type...]
   */
  demands: Float64Array;
  /** For each part, 1 if it stays. */
  stays: Float64Array;
  /** [part, mask of CPUs, mask of memory] */
  places: Float64Array;
  /** For each grant: bytes, CPUs. */
  costs: Float64Array;
  /** [grant, mask, 1 if its memory stays] */
  targets: Float64Array;
  /** The CPUs of each grant, by view and node. */
  cpus: Float64Array;
  /** [grant, view, core, CPUs] */
  shares: Float64Array;
  /** [grant, mask, type, bytes] */
  blocks: Float64Array;
}

/** Which repackings to look for. */
export interface RepackingLimits {
  /** Repackings with exactly this many moves. */
  readonly moves: number;
  /** The number of repackings to leave out, in their order. */
  readonly skip: number;
  /** The greatest number of repackings to return. */
  readonly most: number;
  /** The number of steps, in a search for more than two moves. */
  readonly budget: number;
}
