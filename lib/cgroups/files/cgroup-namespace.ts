// The cgroup namespace of this process. See cgroup_namespaces(7).
import { join } from 'node:path';
import { linkOf } from '../../base/errors.js';
import { MACHINE_CGROUP_ROOT } from '../../input/values/machine-folder.js';

// linux/proc_ns.h: the namespace whose paths are the machine's.
export const INITIAL_CGROUP_NAMESPACE = 'cgroup:[4026531835]';

/** True if this process sees the machine's cgroups under their own names. `root`: where /proc is. */
export const isInInitialCgroupNamespace = (root = '/'): boolean =>
  // A kernel without cgroup namespaces has only one view.
  ['', INITIAL_CGROUP_NAMESPACE].includes(linkOf(join(root, '/proc/self/ns/cgroup')));

/** The cgroup root of a state unless a user chooses one. */
export function defaultCgroupRoot(scope: 'machine' | 'private' | 'memory'): string | null {
  return scope === 'machine' && isInInitialCgroupNamespace() ? MACHINE_CGROUP_ROOT : null;
}
