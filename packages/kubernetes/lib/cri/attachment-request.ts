// AttachmentRequest: what an attachment asks for, by its options or by the container's own limits.
import type { AcquireOptions, AdmitOptions, PodSpec } from 'numalign';
import { cgroupFolder, limitsOf } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { describeContainer, fullName } from './container-names.js';
import type { RunningContainer } from './container-runtime.js';

export interface AttachmentRequestOptions {
  /** A whole number of CPUs. Default: the container's limit, quota divided by period. */
  readonly cpu?: number | undefined;
  /**
   * Memory near the CPUs, such as `2Gi`. Default: the container's limit, or none without a limit.
   */
  readonly memory?: Exclude<AcquireOptions['memory'], object>;
  /** The Topology Manager's policy. Default: the manager's. */
  readonly policy?: AdmitOptions['policy'] | undefined;
}

/**
 * The arguments for `manager.admit`: a pod of this one container, under the container's id. The
 * grant belongs to the container's cgroup. No cgroups are made for it: the container's own has its
 * CPUs.
 * @throws ERR_NO_EXCLUSIVE_CPUS if the container's limit is not a whole number of CPUs and `cpu` is
 *   left out; ERR_INVALID_OPTION if `cpu` is not a whole number
 */
export function attachmentRequest(
  container: RunningContainer,
  { cpu: cpuOption, memory, policy }: AttachmentRequestOptions,
): readonly [PodSpec, AdmitOptions] {
  const { pid } = container;
  const { cpuMax, memoryMax } = limitsOf([cgroupFolder(pid, 'cpu')], [cgroupFolder(pid, 'memory')]);
  const cpu = cpuOption === undefined ? wholeLimit(container, cpuMax?.cpus) : wholeNumber(cpuOption);
  const booked = memory ?? memoryMax?.bytes;
  const containerLimits = { cpu, ...(booked !== undefined && { memory: booked }) };
  return [
    {
      uid: container.id,
      name: fullName(container),
      qosClass: 'Guaranteed',
      containers: [{ name: 'main', limits: containerLimits }],
    },
    {
      ...(policy !== undefined && { policy }),
      owner: { cgroup: container.cpuset.folder },
      enforcement: 'members',
    },
  ];
}

function wholeLimit(container: RunningContainer, cpu: number | undefined): number {
  if (Number.isInteger(cpu)) return cpu!;
  const limit = cpu === undefined ? 'no limit of CPUs' : `a limit of ${cpu} CPUs`;
  const message = `${describeContainer(container)} has ${limit}: only whole CPUs are exclusive`;
  throw new NodeError('ERR_NO_EXCLUSIVE_CPUS', message, {
    value: cpu,
    valid: 'a limit of whole CPUs, or the option cpu',
  });
}

function wholeNumber(cpu: number): number {
  if (Number.isSafeInteger(cpu) && cpu > 0) return cpu;
  const valid = 'a whole number of CPUs, at least 1';
  throw new NodeError('ERR_INVALID_OPTION', `cpu is ${cpu}; valid: ${valid}`, { value: cpu, valid });
}
