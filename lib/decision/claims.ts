// Claims: the exclusive amounts of the containers of a pod that is booked as a whole, and checks
// that something is left for containers that share. Pure.
import { type AdmissionReason, Refusal } from '../base/refusal.js';
import { isStrict } from '../input/placement.js';
import { requestOf } from '../input/pods/pod-request.js';
import { cpuClaims, podExclusiveCount } from './cpus/cpu-choices.js';
import type { Draft } from './cpus/draft.js';
import { type MemoryRequest, memoryRequests } from './memory/memory-requests.js';
import { type Claim, firstUnmet } from './pod-level/partition.js';
import { isExclusive } from './pod-level/pod-level.js';

type Ground = Pick<Draft, 'pod' | 'placement' | 'topology'>;

/** The claims to a type of the pod's memory, by container. */
export const memoryClaims = ({ pod }: Ground, type: string): Claim[] =>
  pod.containers.map((container) => ({
    kind: container.kind,
    amount: isExclusive(pod, container) ? requestOf(container, type) : null,
  }));

/** @throws ERR_POD_POOL_EMPTY if exclusive containers leave none of the pod's CPUs to the others */
export function checkCpusLeft(ground: Ground, reason: AdmissionReason = EMPTY): void {
  const count = podExclusiveCount(ground.pod, ground.placement);
  // Without whole CPUs no container is exclusive.
  if (count > 0) checkLeft(ground, 'cpu', count, cpuClaims(ground), reason);
}

/**
 * @throws ERR_POD_POOL_EMPTY if exclusive containers leave none of the pod's memory to the others
 */
export function checkMemoryLeft(
  ground: Ground,
  requests: readonly MemoryRequest[],
  reason: AdmissionReason = EMPTY,
): void {
  for (const { type, bytes } of requests) checkLeft(ground, type, bytes, memoryClaims(ground, type), reason);
}

const EMPTY = 'EmptyPodSharedPoolError';

/**
 * The kubelet checks this when it makes hints. Under policies that use hints it reports only a
 * failed alignment.
 * @throws ERR_POD_POOL_EMPTY
 */
export function checkLeftByHints(ground: Ground): void {
  if (!isStrict(ground.placement)) return;
  checkCpusLeft(ground, 'TopologyAffinityError');
  checkMemoryLeft(ground, memoryRequests(ground, undefined), 'TopologyAffinityError');
}

function checkLeft(
  { pod }: Ground,
  resource: string,
  total: number,
  claims: readonly Claim[],
  reason: AdmissionReason,
): void {
  const at = firstUnmet(total, claims);
  if (at < 0) return;
  const { name } = pod.containers[at]!;
  const left =
    claims[at]!.amount === null
      ? `nothing is left to container ${name}, which shares`
      : `too little is left to container ${name}`;
  const message = `exclusive containers use up the pod's ${resource}: ${left}`;
  throw new Refusal(reason, 'ERR_POD_POOL_EMPTY', message, {
    value: total,
    valid: `a pod with more ${resource} than its exclusive containers have`,
    resource,
  });
}
