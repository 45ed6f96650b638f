// Pod level: how a pod that has resources as a whole is placed. Pure.
import type { Placement } from '../../input/placement.js';
import { type PodRequest, requestOf } from '../../input/pod-request.js';
import type { ContainerRequest } from '../../input/resource-amounts.js';

/** Whether a pod is booked once for all of its containers, instead of one after the other. */
export function isBookedWhole(
  { resources }: Pick<PodRequest, 'resources'>,
  { scope, topologyPolicy }: Placement,
): boolean {
  return resources?.areManaged === true && scope === 'pod' && topologyPolicy !== 'none';
}

/**
 * Whether the managers give a container what it asks for: of a pod that has resources as a whole only
 * to one that limits its CPUs and its memory to what it requests. All others share.
 */
export function isExclusive({ resources }: PodRequest, container: ContainerRequest): boolean {
  if (!resources) return true;
  return resources.areManaged && isGuaranteed(container);
}

function isGuaranteed(container: ContainerRequest): boolean {
  const { limits = {} } = container;
  return ['cpu', 'memory'].every((resource) => {
    const asked = requestOf(container, resource);
    return asked > 0 && requestOf({ requests: limits }, resource) === asked;
  });
}

/** What the pod as a whole asks for of a resource. */
export function podAmount({ resources }: PodRequest, resource: string): number {
  return resources ? requestOf(resources, resource) : 0;
}
