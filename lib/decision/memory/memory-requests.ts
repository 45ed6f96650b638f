// What is asked of the Memory Manager. Pure.
import { withLast } from '../../base/collections/lists.js';
import type { Placement } from '../../input/placement.js';
import { amountFor, type PodRequest } from '../../input/pods/pod-request.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { isMemoryType } from '../../input/values/memory-types.js';
import type { Topology } from '../../machine/topology.js';
import { isBookedWhole, isExclusive, podAmount } from '../pod-level/pod-level.js';
import type { MemoryGround } from './memory-draft.js';
import { isMemoryKnown } from './memory-tables.js';

/** So many bytes of a type. */
export interface MemoryRequest {
  readonly type: string;
  readonly bytes: number;
}

/** Each type once; what is not in it is not asked for. */
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

// As the kubelet, only types that its app containers ask for.
const typesOfPod = ({ containers }: PodRequest) => [
  ...new Set(containers.filter(({ kind }) => kind === 'app').flatMap(typesOf)),
];

/** What is asked of the Memory Manager for a container, or for the whole pod. */
export function memoryRequests(
  { pod, placement, topology }: Pick<MemoryGround, 'pod' | 'placement' | 'topology'>,
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

// Of a pod that has resources as a whole.
function wholeRequests(pod: PodRequest, placement: Placement): MemoryRequests {
  if (!isBookedWhole(pod, placement)) return NO_REQUESTS;
  return typesOf(pod.resources!)
    .map((type) => ({ type, bytes: podAmount(pod, type) }))
    .filter(({ bytes }) => bytes > 0);
}
