// The requests to the Memory Manager. Pure.
import { withLast } from '../../base/collections/lists.js';
import type { Placement } from '../../input/placement.js';
import { amountFor } from '../../input/pods/pod-request.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { isMemoryType } from '../../input/values/memory-types.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../draft/draft.js';
import { isBookedWhole, isExclusive, podAmount } from '../draft/partition.js';
import { isMemoryKnown } from './memory-tables.js';

/** A number of bytes of one type. */
export interface MemoryRequest {
  readonly type: string;
  readonly bytes: number;
}

/** Has each type once, and only requested ones. */
export type MemoryRequests = readonly MemoryRequest[];

const NO_REQUESTS: MemoryRequests = [];

function isManaged(
  { qosClass, resources }: PodRequest,
  { memoryPolicy }: Placement,
  topology: Topology,
): boolean {
  if (resources && !resources.isManaged) return false;
  return memoryPolicy !== 'None' && qosClass === 'Guaranteed' && isMemoryKnown(topology);
}

const typesOf = ({ requests }: Pick<ContainerRequest, 'requests'>) =>
  Object.keys(requests).filter(isMemoryType);

// Like the kubelet, only types that app containers request.
const typesOfPod = ({ containers }: PodRequest) => [
  ...new Set(containers.filter(({ kind }) => kind === 'app').flatMap(typesOf)),
];

/** The requests to the Memory Manager for a container, or for the whole pod. */
export function memoryRequests(
  { pod, placement, topology }: Pick<Draft, 'pod' | 'placement' | 'topology'>,
  container: ContainerRequest | undefined,
): MemoryRequests {
  if (!isManaged(pod, placement, topology)) return NO_REQUESTS;
  if (pod.resources) {
    if (!container) return wholeRequests(pod, placement);
    if (!isExclusive(pod, container)) return NO_REQUESTS;
  }
  const types = container ? Object.keys(container.requests) : typesOfPod(pod);
  let requests = NO_REQUESTS;
  for (let i = 0; i < types.length; i++) {
    const type = types[i]!;
    if (!isMemoryType(type)) continue;
    const bytes = amountFor(pod, container, type);
    if (bytes > 0) requests = withLast(requests, { type, bytes });
  }
  return requests;
}

// For a pod with pod-level resources.
function wholeRequests(pod: PodRequest, placement: Placement): MemoryRequests {
  if (!isBookedWhole(pod, placement)) return NO_REQUESTS;
  return typesOf(pod.resources!)
    .map((type) => ({ type, bytes: podAmount(pod, type) }))
    .filter(({ bytes }) => bytes > 0);
}
