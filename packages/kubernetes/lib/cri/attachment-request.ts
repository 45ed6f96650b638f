// What an attachment asks for: by its options, else by the limits of the container itself.
import type { AdmitOptions, PodSpec, Quantity } from 'numalign';
import { NodeError } from '../base/errors.js';
import { limitsOfProcess } from '../cgroups/limits.js';
import { describeContainer, fullName } from './container-names.js';
import type { RunningContainer } from './container-runtime.js';

export interface AttachmentRequestOptions {
  /** How many CPUs: a whole number. Default: the container's limit, quota divided by period. */
  readonly cpu?: number | undefined;
  /** Memory near the CPUs, such as `2Gi`. Default: the container's limit; without one, none. */
  readonly memory?: Quantity | undefined;
  /** The Topology Manager's policy. Default: the manager's. */
  readonly policy?: AdmitOptions['policy'] | undefined;
}

/**
 * What `manager.admit` takes: a pod of this one container, under the container's id. The grant
 * belongs to the container's cgroup. No cgroups are made for it: its CPUs are those of the
 * container's own.
 * @throws ERR_NO_EXCLUSIVE_CPUS where the container's limit is no whole number of CPUs and none is
 *   given; ERR_INVALID_OPTION where what is given is no whole number
 */
export function attachmentRequest(
  container: RunningContainer,
  { cpu: given, memory, policy }: AttachmentRequestOptions,
): readonly [PodSpec, AdmitOptions] {
  const limits = limitsOfProcess(container.pid);
  const cpu = given === undefined ? wholeLimit(container, limits.cpu) : wholeNumber(given);
  const booked = memory ?? limits.memory;
  const ofContainer = { cpu, ...(booked !== undefined && { memory: booked }) };
  return [
    {
      uid: container.id,
      name: fullName(container),
      qosClass: 'Guaranteed',
      containers: [{ name: 'main', limits: ofContainer }],
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
    valid: 'a limit of whole CPUs, or a number of them beside the container',
  });
}

function wholeNumber(cpu: number): number {
  if (Number.isSafeInteger(cpu) && cpu > 0) return cpu;
  const valid = 'a whole number of CPUs, at least 1';
  throw new NodeError('ERR_INVALID_OPTION', `cpu is ${cpu}; valid: ${valid}`, { value: cpu, valid });
}
