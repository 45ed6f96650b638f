// SharedGroup: the cgroup of the shared pool, as a process finds itself in it.
import { join } from 'node:path';
import { readIfThere } from '../../cgroups/files/cgroup-files.js';
import { findHierarchy } from '../../cgroups/files/hierarchies.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import { SHARED } from '../../enforcement/layout/layout.js';

/** The cgroup of the shared pool, in which a process stays that could not be put back. */
export interface SharedGroup {
  /** Of the process, below the root of its hierarchy. */
  readonly path: string;
  /** The file to which the pid is to be written, to take the process out to the root. */
  readonly exit: string;
}

// null where it is in another cgroup.
export function sharedGroupOf(pid: number, root: string | null): SharedGroup | null {
  const path = readIfThere(`/proc/${pid}/cpuset`)?.trim();
  if (path === undefined || root === null || !isAtOrBelow(path, join(root, SHARED))) return null;
  const top = findHierarchy('cpuset')?.mount.point;
  return top === undefined ? null : { path, exit: join(top, 'cgroup.procs') };
}
