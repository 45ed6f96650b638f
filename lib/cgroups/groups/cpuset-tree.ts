// CpusetTree: what the groups of a cpuset hierarchy share, and the state of a partition.
import type { CpuSet } from '../../machine/cpu-set.js';
import type { CgroupFiles } from '../files/cgroup-files.js';
import type { MadeGroups } from '../files/made-groups.js';

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
