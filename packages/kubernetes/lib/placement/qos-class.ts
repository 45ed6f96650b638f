// QosClass: the QoS class of a container's pod, as far as a runtime reports it. Pure.
import type { QosClass } from 'numalign/kubelet';
import type { PodSandbox } from '../nri/messages.js';
import type { Amounts } from './resources.js';

/**
 * A kubelet shows the class by the cgroup of the pod, with any driver. Without a kubelet, a
 * container is judged as Kubernetes judges a pod: Guaranteed needs limits of CPU and memory, and a
 * request of CPU that equals its limit.
 */
export function qosClassOf({ linux }: Pick<PodSandbox, 'linux'>, amounts: Amounts): QosClass {
  const parent = linux?.cgroup_parent ?? '';
  if (parent.includes('kubepods')) {
    if (parent.includes('besteffort')) return 'BestEffort';
    return parent.includes('burstable') ? 'Burstable' : 'Guaranteed';
  }
  const { requestMillis, limitMillis, memoryBytes } = amounts;
  if (limitMillis === undefined && memoryBytes === undefined) return 'BestEffort';
  const isGuaranteed =
    limitMillis !== undefined && memoryBytes !== undefined && requestMillis === limitMillis;
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}
