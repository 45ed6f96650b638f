// The requests to the Device Manager. Pure.
import { withLast } from '../../base/collections/lists.js';
import { amountFor } from '../../input/pods/pod-request.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { DeviceDraft } from './device-draft.js';
import type { DeviceResource } from './device-resources.js';

export interface DeviceRequest {
  readonly resource: DeviceResource;
  readonly count: number;
}

const NO_REQUESTS: readonly DeviceRequest[] = [];

/** The requests that the Device Manager serves, without those that a DRA driver serves. */
export function ownDevices(
  { pod }: Pick<DeviceDraft, 'pod'>,
  { name }: ContainerRequest,
  requests: readonly DeviceRequest[],
): readonly DeviceRequest[] {
  const others = pod.draExtendedResources;
  if (!others || !Object.hasOwn(others, name)) return requests;
  return requests.filter(({ resource }) => !others[name]!.includes(resource.name));
}

/** The requests of a container, or of the whole pod, for the resources that this manager knows. */
export function deviceRequests(
  { pod, resources }: Pick<DeviceDraft, 'pod' | 'resources'>,
  container: ContainerRequest | undefined,
): readonly DeviceRequest[] {
  if (resources.size === 0) return NO_REQUESTS;
  let requests = NO_REQUESTS;
  for (const resource of resources.values()) {
    const count = amountFor(pod, container, resource.name);
    if (count > 0) requests = withLast(requests, { resource, count });
  }
  return requests;
}
