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

// Like the kubelet, only types that app containers request.
const typesOfPod = ({ containers }: PodRequest) => [
  ...new Set(
    containers.filter(({ kind }) => kind === 'app').flatMap(({ requests }) => Object.keys(requests)),
  ),
];

/** The requests to the Memory Manager for a container, or for the whole pod. */
export function memoryRequests(
  { pod, placement, topology }: Pick<Draft, 'pod' | 'placement' | 'topology'>,
  container: ContainerRequest | undefined,
): MemoryRequests {
  const { resources } = pod;
  const whole = container ? null : resources;
  const names = container || whole ? Object.keys((container ?? whole)!.requests) : typesOfPod(pod);
  let requests = NO_REQUESTS;
  for (let i = 0; i < names.length; i++) {
    const type = names[i]!;
    if (!isMemoryType(type)) continue;
    const bytes = whole ? podAmount(pod, type) : amountFor(pod, container, type);
    if (bytes > 0) requests = withLast(requests, { type, bytes });
  }
  // Most grants have none.
  if (requests.length === 0 || !isManaged(pod, placement, topology)) return NO_REQUESTS;
  const isOwn = container ? isExclusive(pod, container) : !whole || isBookedWhole(pod, placement);
  return isOwn ? requests : NO_REQUESTS;
}
