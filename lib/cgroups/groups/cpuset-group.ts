// CpusetGroup: a cgroup at or below numalign's root, with the CPUs and memory nodes of its
// processes.
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { CgroupFiles } from '../files/cgroup-files.js';
import type { MadeGroups } from '../files/made-groups.js';

/** The folder of the cgroup that processes move to. */
export type Home = string | ((pid: number) => string);

export type PartitionKind = 'member' | 'root' | 'isolated';

/** The value of `cpuset.cpus.partition` (cgroup v2). */
export interface Partition {
  /** `none`: the file does not exist. */
  kind: PartitionKind | 'none';
  /** True if the kernel made the partition. It reports no error if it could not. */
  valid: boolean;
  /** The kernel's text, for example `root invalid (Cpu list in cpuset.cpus not exclusive)`. */
  text: string;
  /**
   * The requested CPUs, and the CPUs of the cgroup's own processes, without those of nested
   * partitions.
   */
  cpus: CpuSet;
  effective: CpuSet;
}

/** How often and how long a quota stopped the threads of a cgroup. */
export interface Throttling {
  /** Periods in which the threads used up the quota (`nr_throttled` of cpu.stat). */
  nrThrottled: number;
  /** How long threads waited for the next period, in microseconds, summed over CPUs. */
  throttledUs: number;
}

/**
 * A handle, perhaps of a cgroup that does not exist. Every operation is synchronous; when it
 * returns, it is either done or undone. All throw ERR_CGROUP if the kernel refuses, with `errno`,
 * `syscall`, `path`, `reason`, `value` and `valid` in the details.
 */
export interface CpusetGroup {
  readonly path: string;
  exists(): boolean;
  /**
   * Makes the cgroup, and what is missing between it and the root, with these CPUs and memory
   * nodes. Grows cgroups in between that have fewer. Changes an existing cgroup only where it
   * differs. Lifts the quota of cgroups that numalign made.
   * @param mems empty: not restricted (v2 only)
   * @param options `migrateMemory`: pages move with processes that come in and with the memory
   *   nodes (v1; for the nodes, v2 always does so)
   * @throws ERR_CGROUP also if the cgroup would lack some of these CPUs that are online
   */
  create(cpus: CpuSet, mems: NodeSet, options?: { migrateMemory?: boolean }): void;
  /**
   * Sets the CPUs. Cgroups below keep the part of `cpus` that they have, or get all of it. They
   * shrink before those above them, and grow after.
   * @throws ERR_CGROUP also if the cgroup would lack some CPUs that are online, or a partition
   *   below would become invalid
   */
  setCpus(cpus: CpuSet): void;
  /** Like {@link setCpus}. `migrate`: pages move to the new nodes (v1; v2 always does so). */
  setMems(mems: NodeSet, options?: { migrate?: boolean }): void;
  /**
   * Sets whether pages move with processes that come in and with the memory nodes (v1; v2 always
   * does so).
   */
  setMigration(migrates: boolean): void;
  /** The CPUs that were set. On v2, empty means those of the cgroup above. */
  cpus(): CpuSet;
  mems(): NodeSet;
  effectiveCpus(): CpuSet;
  effectiveMems(): NodeSet;
  /** Moves a process with all its threads, even those that start meanwhile (`cgroup.procs`). */
  attach(pid: number): void;
  /** Moves one thread (v1: `tasks`). */
  attachThread(tid: number): void;
  processes(): number[];
  threads(): number[];
  /** True if a process is in it or below it. */
  isPopulated(): boolean;
  /** True if numalign made it, and so may remove it. */
  isMade(): boolean;
  /** Like {@link CpusetHierarchy.setPartition}, below a partition. */
  setPartition(kind: PartitionKind, cpus: CpuSet): void;
  partition(): Partition;
  /** Throttling by its own quota; null if it has no cpu controller. */
  stats(): Throttling | null;
  /** Moves all processes in it or below it to another cgroup. */
  evacuate(home: Home): void;
  /**
   * Moves a process's threads that are in it to the cgroup with this folder; moves the whole
   * process if all its threads are in it.
   */
  moveBack(pid: number, to: string): void;
  /**
   * Removes it and the cgroups below it. A missing cgroup is not an error.
   * @param leftoversTo the folder of the cgroup that processes inside move to first; a process
   *   moves as a whole if all its threads are inside
   * @throws ERR_CGROUP if numalign did not make all of them (`not-made`), or processes are inside
   *   and have no place to go (`in-use`)
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
   * True if a folder above the root may enable controllers: it is not inside a unit that systemd
   * manages itself.
   */
  isOpen(folder: string): boolean;
}
