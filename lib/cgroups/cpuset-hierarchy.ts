// CpusetHierarchy: where this machine keeps cpusets, cgroup v1 or v2, and the part of it that is
// ours: one cgroup, our root, and what is below.
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { CpusetGroup, Partition, PartitionKind } from './groups/cpuset-group.js';
import type { CgroupLimits } from './limits.js';

export interface CgroupPlace {
  /** The folder. */
  path: string;
  /** Our root counts. */
  isBelowRoot: boolean;
  isHierarchyRoot: boolean;
}

export interface CpusetHierarchy {
  readonly version: 1 | 2;
  /** Where it is mounted, such as `/sys/fs/cgroup`. */
  readonly mount: string;
  /** The folder of our root. */
  readonly rootPath: string;
  /** Whether our root can be used, or made. */
  canWrite(): boolean;
  /** @throws ERR_CGROUP which says why {@link canWrite} is false */
  checkWritable(): void;
  /**
   * Makes our root if it is not there, with these CPUs and memory nodes as far as the cgroup above
   * has them: that of a container has fewer than the machine. Writes nothing if it is so already.
   * As {@link CpusetGroup.create}.
   */
  ensureRoot(cpus: CpuSet, mems: NodeSet): void;
  /**
   * A handle of our root (no names) or of one below. A name is any text: it is percent-encoded
   * where needed.
   * @throws ERR_CGROUP (`bad-name`)
   */
  group(...names: string[]): CpusetGroup;
  /**
   * A handle of the cgroup with this folder, at or below our root.
   * @throws ERR_CGROUP (`bad-path`)
   */
  at(path: string): CpusetGroup;
  /**
   * Where a process or one of its threads is now.
   * @throws ERR_CGROUP where it has ended, or is outside of what is mounted here
   */
  groupOf(pid: number, tid?: number): CgroupPlace;
  /** One thread goes to the cgroup with this folder (v1). @throws ERR_CGROUP */
  moveThread(tid: number, to: string): void;
  /** The CPUs that threads in the cgroup with this folder may use. @throws ERR_CGROUP */
  effectiveCpusOf(path: string): CpuSet;
  /**
   * The names of the groups directly below our root, as {@link group} takes them. Folders of names
   * that it would not make are left out.
   */
  list(): string[];
  /**
   * The tightest limits at and above a process; without `pid`, on v2 at and above our root, on v1
   * those of this process.
   */
  limits(pid?: number): CgroupLimits;
  /**
   * Makes our root, and makes it a partition with these CPUs, changes its CPUs, or ends it
   * (`member`, where no CPUs mean those of the cgroup above). Read back; what is not valid is
   * undone. Writes nothing if it is so already.
   * @throws ERR_CGROUP: `version` on v1; `not-delegated` where the cgroup above is no partition;
   *   `partition-invalid` with `text`, what was read back
   */
  setPartition(kind: PartitionKind, cpus: CpuSet): void;
  /** Why our root cannot be a partition, whatever its CPUs are; undefined where it can. */
  whyNoPartition(): Error | undefined;
  partition(): Partition;
  /** Removes our root if numalign made it and nothing is in it. Answers whether it did. */
  removeRoot(): boolean;
}
