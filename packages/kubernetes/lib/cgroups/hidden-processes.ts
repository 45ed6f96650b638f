// HiddenProcesses: cgroup v1 does not list processes of other pid namespaces. There containers would
// look as if they had ended, and their CPUs would be given to others.
import { readlinkSync } from 'node:fs';
import { NodeError } from '../base/errors.js';

// linux/proc_ns.h: the pid namespace that contains all others.
const INITIAL = 'pid:[4026531836]';

/** Whether processes of containers are missing in their cgroups. `version`: of the cgroups. */
export function areProcessesHidden(version: 1 | 2, namespace = readlinkSync('/proc/self/ns/pid')): boolean {
  return version === 1 && namespace !== INITIAL;
}

export const HIDDEN = 'cgroup v1 does not list the processes of containers in this pid namespace';
export const VISIBLE = 'the pid namespace of the machine: hostPID: true in the pod, or cgroup v2';

/** @throws ERR_CGROUP if they are hidden */
export function refuseHiddenProcesses(version: 1 | 2): void {
  if (!areProcessesHidden(version)) return;
  throw new NodeError('ERR_CGROUP', `${HIDDEN}: each would count as ended`, {
    value: version,
    valid: VISIBLE,
  });
}
