// SharedGroup: the cgroup of the shared pool below the cgroup root, and the processes that numalign
// has put into it. With cgroup v2, where a group is more than a cpuset, processes stay where they
// are.
import { NumalignError, unlessRefused } from '../../base/errors.js';
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { SHARED } from '../layout/layout.js';

/** What the group is made with: the shared pool, and what the machine has. */
export interface PoolCpuset {
  readonly pool: CpuSet;
  readonly all: CpuSet;
  readonly mems: NodeSet;
}

/** What writes REQUIRES the state's lock. */
export class SharedGroup {
  readonly #hierarchy: CpusetHierarchy;
  readonly path: string;

  constructor(hierarchy: CpusetHierarchy) {
    this.#hierarchy = hierarchy;
    this.path = hierarchy.group(SHARED).path;
  }

  exists(): boolean {
    return this.#hierarchy.group(SHARED).exists();
  }

  /** Whether processes in a cgroup are confined by it. */
  contains(path: string): boolean {
    return isAtOrBelow(path, this.path);
  }

  /** Makes it where it is not there. @throws ERR_CGROUP */
  make({ pool, all, mems }: PoolCpuset): void {
    this.#hierarchy.ensureRoot(all, mems);
    // Of the machine's, what the root could have.
    this.#hierarchy.group(SHARED).create(pool, this.#hierarchy.group().effectiveMems());
  }

  /**
   * Has a process run in it, where that is possible: one that somebody has put into a group of its
   * own stays there. Otherwise masks must do.
   */
  join(pid: number, cpuset: PoolCpuset): void {
    if (!this.couldJoin(pid)) return;
    try {
      this.make(cpuset);
      this.#hierarchy.group(SHARED).attach(pid);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    }
  }

  /** Whether {@link join} would move a process. */
  couldJoin(pid: number): boolean {
    if (this.#hierarchy.version !== 1) return false;
    return unlessRefused(
      () => this.#hierarchy.groupOf(pid).isHierarchyRoot && this.#hierarchy.canWrite(),
      false,
    );
  }

  /** A process at this path goes back to where {@link join} took it from. @throws ERR_CGROUP */
  leave(pid: number, path: string): void {
    const { version, mount } = this.#hierarchy;
    if (version === 1 && this.contains(path)) this.#hierarchy.group(SHARED).moveBack(pid, mount);
  }
}
