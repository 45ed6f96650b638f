// Pod level: how a pod with pod-level resources is placed. Pure.
import type { Placement } from '../../input/placement.js';
import { requestOf } from '../../input/pods/pod-request.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';

/** True if a pod is booked once for all of its containers. */
export function isBookedWhole(
  { resources }: Pick<PodRequest, 'resources'>,
  { scope, topologyPolicy }: Placement,
): boolean {
  return resources?.isManaged === true && scope === 'pod' && topologyPolicy !== 'none';
}

/**
 * True if the managers allocate for this container. With pod-level resources, only containers whose
 * CPU and memory limits equal their requests are exclusive; all others share.
 */
export function isExclusive({ resources }: PodRequest, { name }: ContainerRequest): boolean {
  return !resources || (resources.isManaged && resources.guaranteed.includes(name));
}

/** The pod-level request for a resource. */
export function podAmount({ resources }: PodRequest, resource: string): number {
  return resources ? requestOf(resources, resource) : 0;
}
