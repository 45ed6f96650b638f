// CpusetGroup: one cgroup at or below our root, with the CPUs and memory nodes that its processes
// may use.
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { CgroupFiles } from '../files/cgroup-files.js';
import type { MadeGroups } from '../files/made-groups.js';

/** The folder of the cgroup for processes that are moved out. */
export type Home = string | ((pid: number) => string);

export type PartitionKind = 'member' | 'root' | 'isolated';

/** What `cpuset.cpus.partition` says (cgroup v2). */
export interface Partition {
  /** `none`: there is no such file. */
  kind: PartitionKind | 'none';
  /** A partition that the kernel could make. It raises no error for one that it could not. */
  valid: boolean;
  /** As the kernel wrote it, such as `root invalid (Cpu list in cpuset.cpus not exclusive)`. */
  text: string;
  /** What was asked for, and what its own processes have: not what nested partitions took. */
  cpus: CpuSet;
  effective: CpuSet;
}

/** How often and how long a quota stopped the threads of a cgroup. */
export interface Throttling {
  /**
   * Periods in which the quota was used up, and the time that processes waited for the next, in µs.
   */
  nrThrottled: number;
  throttledUs: number;
}

/**
 * A handle: it can be of a cgroup that is not there. Every operation is synchronous, and either
 * done or undone when it returns. All throw ERR_CGROUP where the kernel refuses, with `errno`,
 * `syscall`, `path`, `reason`, `value` and `valid` in the details.
 */
export interface CpusetGroup {
  readonly path: string;
  exists(): boolean;
  /**
   * Makes it and what is missing between it and our root, with these CPUs and memory nodes; cgroups
   * between that have fewer are grown. One that is there is changed as far as it differs. The quota
   * of cgroups that we made is lifted.
   * @param mems empty: not restricted (v2 only)
   * @param options `migrateMemory`: pages move along with processes that come in and with the
   *   memory nodes (v1; v2 always does so for the latter)
   * @throws ERR_CGROUP also where the cgroup would not have all of these CPUs that are online
   */
  create(cpus: CpuSet, mems: NodeSet, options?: { migrateMemory?: boolean }): void;
  /**
   * Cgroups below keep what they have of `cpus`, or get all of it; they are shrunk before and grown
   * after those above them.
   * @throws ERR_CGROUP also where it would not have all of those that are online, or a partition
   *   below would become invalid
   */
  setCpus(cpus: CpuSet): void;
  /** As {@link setCpus}. `migrate`: pages move to the new nodes (v1; v2 always does so). */
  setMems(mems: NodeSet, options?: { migrate?: boolean }): void;
  /**
   * Whether pages move along with processes that come in, and with the memory nodes (v1; v2 always
   * does so).
   */
  setMigration(migrates: boolean): void;
  /** What was set. On v2 empty: what the cgroup above has. */
  cpus(): CpuSet;
  mems(): NodeSet;
  effectiveCpus(): CpuSet;
  effectiveMems(): NodeSet;
  /** The process with all its threads, those being born included (`cgroup.procs`). */
  attach(pid: number): void;
  /** One thread (v1: `tasks`). */
  attachThread(tid: number): void;
  processes(): number[];
  threads(): number[];
  /** Whether a process is in it or below it. */
  isPopulated(): boolean;
  /** Whether numalign made it, so that it may remove it. */
  isMade(): boolean;
  /** As {@link CpusetHierarchy.setPartition}, below a partition. */
  setPartition(kind: PartitionKind, cpus: CpuSet): void;
  partition(): Partition;
  /** Of its own quota; null where the cpu controller does not reach it. */
  stats(): Throttling | null;
  /** All processes that are in it or below it go to another cgroup. */
  evacuate(home: Home): void;
  /**
   * Those threads of a process that are in it go to the cgroup with this folder; as a whole where
   * all of them are.
   */
  moveBack(pid: number, to: string): void;
  /**
   * Removes it and those below it. One that is not there is no error.
   * @param leftoversTo the folder of the cgroup where processes that are inside go first, as a
   *   whole where all their threads are inside
   * @throws ERR_CGROUP where we did not make all of them (`not-made`), or processes are inside and
   *   were given no place (`in-use`)
   */
  remove(leftoversTo?: Home): void;
}

/** What the groups of a hierarchy share. */
export interface CpusetTree {
  readonly version: 1 | 2;
  readonly mount: string;
  readonly rootPath: string;
  readonly made: MadeGroups;
  readonly files: CgroupFiles;
  /**
   * Whether a folder that is not below our root may be told to hand controllers on: not inside of
   * units that systemd keeps to itself.
   */
  isOpen(folder: string): boolean;
}
