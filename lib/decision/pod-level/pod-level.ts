// Pod level: how a pod that has resources as a whole is placed. Pure.
import type { Placement } from '../../input/placement.js';
import { type PodRequest, requestOf } from '../../input/pods/pod-request.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';

/** Whether a pod is booked once for all of its containers, instead of one after the other. */
export function isBookedWhole(
  { resources }: Pick<PodRequest, 'resources'>,
  { scope, topologyPolicy }: Placement,
): boolean {
  return resources?.isManaged === true && scope === 'pod' && topologyPolicy !== 'none';
}

/**
 * Whether the managers give a container what it asks for: of a pod that has resources as a whole only
 * to one that limits its CPUs and its memory to what it requests. All others share.
 */
export function isExclusive({ resources }: PodRequest, { name }: ContainerRequest): boolean {
  return !resources || (resources.isManaged && resources.guaranteed.includes(name));
}

/** What the pod as a whole asks for of a resource. */
export function podAmount({ resources }: PodRequest, resource: string): number {
  return resources ? requestOf(resources, resource) : 0;
}
