// SharedGroup: the shared cgroup that a process is in.
import { join } from 'node:path';
import { readIfThere } from '../../cgroups/files/cgroup-files.js';
import { findHierarchy } from '../../cgroups/files/hierarchies.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import { SHARED } from '../../enforcement/layout/layout.js';

/** The shared cgroup of a process that numalign could not put back where it came from. */
export interface SharedGroup {
  /** The path of the cgroup, below the root of its hierarchy. */
  readonly path: string;
  /** The file that takes the process out to the root if you write its pid there. */
  readonly exit: string;
}

/** null if the process is in another cgroup. */
export function sharedGroupOf(pid: number, root: string | null): SharedGroup | null {
  const path = readIfThere(`/proc/${pid}/cpuset`)?.trim();
  if (path === undefined || root === null || !isAtOrBelow(path, join(root, SHARED))) return null;
  const top = findHierarchy('cpuset')?.mount.point;
  return top === undefined ? null : { path, exit: join(top, 'cgroup.procs') };
}
