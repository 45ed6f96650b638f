// CpusetHierarchy: the machine's cpuset hierarchy, cgroup v1 or v2, and numalign's part of it: a
// root cgroup and the groups below.
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { CpusetGroup, Partition, PartitionKind } from './groups/cpuset-group.js';
import type { CgroupLimits } from './limits.js';

export interface CgroupPlace {
  /** The folder. */
  path: string;
  /** True at the root too. */
  isBelowRoot: boolean;
  isHierarchyRoot: boolean;
}

export interface CpusetHierarchy {
  readonly version: 1 | 2;
  /** The mount point, for example `/sys/fs/cgroup`. */
  readonly mount: string;
  /** The folder of numalign's root. */
  readonly rootPath: string;
  /** True if the root can be used, or made. */
  canWrite(): boolean;
  /** @throws ERR_CGROUP, which says why {@link canWrite} is false */
  checkWritable(): void;
  /**
   * Makes the root if it is missing, with those of these CPUs and memory nodes that the cgroup
   * above has: a container's cgroup has fewer than the machine. Writes nothing if all is as it
   * should be. See {@link CpusetGroup.create}.
   */
  ensureRoot(cpus: CpuSet, mems: NodeSet): void;
  /** The CPUs and memory nodes that the cgroup above the root has now. @throws ERR_CGROUP */
  aboveRoot(): { readonly cpus: CpuSet; readonly mems: NodeSet };
  /**
   * A handle of the root (no names) or of a group below it. A name is any text; it is
   * percent-encoded if needed.
   * @throws ERR_CGROUP (`bad-name`)
   */
  group(...names: string[]): CpusetGroup;
  /**
   * A handle of the cgroup with this folder, at or below the root.
   * @throws ERR_CGROUP (`bad-path`)
   */
  at(path: string): CpusetGroup;
  /**
   * The cgroup of a process or of one of its threads.
   * @throws ERR_CGROUP if it has ended, or its cgroup is not mounted here
   */
  groupOf(pid: number, tid?: number): CgroupPlace;
  /** Moves one thread to the cgroup with this folder (v1). @throws ERR_CGROUP */
  moveThread(tid: number, to: string): void;
  /** The CPUs that threads in the cgroup with this folder may use. @throws ERR_CGROUP */
  effectiveCpusOf(path: string): CpuSet;
  /**
   * The names of the groups directly below the root, as {@link group} takes them. Leaves out
   * folders with names that it would not make.
   */
  list(): string[];
  /**
   * The tightest limits at and above a process. Without `pid`: at and above the root on v2, those
   * of this process on v1.
   */
  limits(pid?: number): CgroupLimits;
  /**
   * Makes the root, and makes it a partition with these CPUs, changes its CPUs, or ends it
   * (`member`, for which no CPUs mean those of the cgroup above). Reads back, and undoes what is
   * not valid. Writes nothing if all is as it should be.
   * @throws ERR_CGROUP: `version` on v1; `not-delegated` if the cgroup above is not a partition;
   *   `partition-invalid` with `text`, the value read back
   */
  setPartition(kind: PartitionKind, cpus: CpuSet): void;
  /** Why the root cannot be a partition with any CPUs; undefined if it can. */
  whyNoPartition(): Error | undefined;
  partition(): Partition;
  /** Removes the root if numalign made it and it is empty. Returns true if it did. */
  removeRoot(): boolean;
}
