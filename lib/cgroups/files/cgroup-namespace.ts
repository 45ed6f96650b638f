// The cgroup namespace of this process. See cgroup_namespaces(7).
import { readlinkSync } from 'node:fs';

// linux/proc_ns.h: the namespace in which paths are those of the machine.
const INITIAL = 'cgroup:[4026531835]';

/** Whether this process sees the machine's cgroups under their own names. */
export function isInInitialCgroupNamespace(): boolean {
  try {
    return readlinkSync('/proc/self/ns/cgroup') === INITIAL;
  } catch {
    // Kernels without such namespaces have one.
    return true;
  }
}
