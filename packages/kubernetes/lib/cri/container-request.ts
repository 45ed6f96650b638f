// What an attachment asks for: by its options, else by the limits of the container itself.
import type { AcquireOptions } from 'numalign';
import { NodeError } from '../base/errors.js';
import { limitsOfProcess } from '../cgroups/limits.js';
import { describeContainer, fullName } from './container-names.js';
import type { RunningContainer } from './container-runtime.js';

export interface ContainerRequestOptions {
  /** How many CPUs: a whole number. Default: the container's limit, quota divided by period. */
  readonly cpu?: number | undefined;
  /** Memory near the CPUs, such as `2Gi`. Default: the container's limit; without one, none. */
  readonly memory?: AcquireOptions['memory'] | undefined;
  /** The Topology Manager's policy. Default: the manager's. */
  readonly policy?: AcquireOptions['policy'] | undefined;
}

/**
 * The options of `manager.acquire`. The grant belongs to the container's cgroup. No cgroups are made
 * for it: its CPUs are those of the container's own.
 * @throws ERR_NO_EXCLUSIVE_CPUS where the container's limit is no whole number of CPUs and none is
 *   given
 */
export function containerRequest(
  container: RunningContainer,
  { cpu, memory, policy }: ContainerRequestOptions,
): AcquireOptions {
  const limits = limitsOfProcess(container.pid);
  const wanted = cpu ?? limits.cpu;
  if (wanted === undefined || (cpu === undefined && !Number.isInteger(wanted))) {
    const limit = wanted === undefined ? 'no limit of CPUs' : `a limit of ${wanted} CPUs`;
    const message = `${describeContainer(container)} has ${limit}: only whole CPUs are exclusive`;
    throw new NodeError('ERR_NO_EXCLUSIVE_CPUS', message, {
      value: wanted,
      valid: 'a limit of whole CPUs, or a number of them beside the container',
    });
  }
  const booked = memory ?? limits.memory;
  return {
    cpu: wanted,
    ...(booked !== undefined && { memory: booked }),
    ...(policy !== undefined && { policy }),
    name: fullName(container),
    owner: { cgroup: container.cpuset.folder },
    enforcement: 'members',
  };
}
