// SharedGroup: the cgroup of the shared pool below the cgroup root, and the processes that numalign
// moves into it. With cgroup v2 a group is more than a cpuset, so processes stay where they are.
import { unlessRefused } from '../../base/errors.js';
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { SHARED } from './layout.js';

/** What the group is made from: the shared pool, and all CPUs and memory nodes of the machine. */
export interface PoolCpuset {
  readonly pool: CpuSet;
  readonly all: CpuSet;
  readonly mems: NodeSet;
}

/** Everything that writes REQUIRES the state's lock. */
export class SharedGroup {
  readonly path: string;

  constructor(private readonly hierarchy: CpusetHierarchy) {
    this.path = hierarchy.group(SHARED).path;
  }

  exists(): boolean {
    return this.hierarchy.group(SHARED).exists();
  }

  /** Whether this group confines the processes of a cgroup. */
  contains(path: string): boolean {
    return isAtOrBelow(path, this.path);
  }

  /** Makes the group if it does not exist. @throws ERR_CGROUP */
  make({ pool, all, mems }: PoolCpuset): void {
    this.hierarchy.ensureRoot(all, mems);
    // The root may have fewer memory nodes than the machine.
    this.hierarchy.group(SHARED).create(pool, this.hierarchy.group().effectiveMems());
  }

  /**
   * Moves a process into the group if possible. A process that another program has put into a group
   * stays there, and is kept off by its mask.
   */
  join(pid: number, cpuset: PoolCpuset): void {
    if (!this.couldJoin(pid)) return;
    unlessRefused(() => {
      this.make(cpuset);
      this.hierarchy.group(SHARED).attach(pid);
    });
  }

  /** Whether {@link join} would move a process. */
  couldJoin(pid: number): boolean {
    if (this.hierarchy.version !== 1) return false;
    return unlessRefused(
      () => this.hierarchy.folderOf(pid) === this.hierarchy.mount && this.hierarchy.canWrite(),
      false,
    );
  }

  /** Moves a process at this path back to where {@link join} took it from. @throws ERR_CGROUP */
  leave(pid: number, path: string): void {
    const { version, mount } = this.hierarchy;
    if (version === 1 && this.contains(path)) this.hierarchy.group(SHARED).moveBack(pid, mount);
  }
}
