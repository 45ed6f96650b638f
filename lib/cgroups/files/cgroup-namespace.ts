// The cgroup namespace of this process. See cgroup_namespaces(7).
import { readlinkSync } from 'node:fs';

// linux/proc_ns.h: the namespace whose paths are the machine's.
const INITIAL = 'cgroup:[4026531835]';

/** True if this process sees the machine's cgroups under their own names. */
export function isInInitialCgroupNamespace(): boolean {
  try {
    return readlinkSync('/proc/self/ns/cgroup') === INITIAL;
  } catch {
    // A kernel without cgroup namespaces has only one view.
    return true;
  }
}
