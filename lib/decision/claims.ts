// Claims: the exclusive amounts of the containers of a pod that is booked as a whole, and checks
// that something is left for containers that share. Pure.
import { type AdmissionReason, refusal } from '../base/refusal.js';
import { isStrict } from '../input/placement.js';
import { requestOf } from '../input/pods/pod-request.js';
import { cpuClaims, podExclusiveCount } from './cpus/cpu-choices.js';
import type { Draft } from './draft/draft.js';
import { type Claim, firstUnmet, isExclusive } from './draft/partition.js';
import { type MemoryRequest, memoryRequests } from './memory/memory-requests.js';

type PodDraft = Pick<Draft, 'pod' | 'placement' | 'topology'>;

/** The claims to a type of the pod's memory, by container. */
export const memoryClaims = ({ pod }: PodDraft, type: string): Claim[] =>
  pod.containers.map((container) => ({
    kind: container.kind,
    amount: isExclusive(pod, container) ? requestOf(container, type) : null,
  }));

/** @throws ERR_POD_POOL_EMPTY if exclusive containers leave none of the pod's CPUs to the others */
export function checkCpusLeft(draft: PodDraft, reason: AdmissionReason = EMPTY): void {
  const total = podExclusiveCount(draft.pod, draft.placement);
  // Without whole CPUs no container is exclusive.
  if (total > 0) checkLeft(draft, { resource: 'cpu', total, claims: cpuClaims(draft) }, reason);
}

/**
 * @throws ERR_POD_POOL_EMPTY if exclusive containers leave none of the pod's memory to the others
 */
export function checkMemoryLeft(
  draft: PodDraft,
  requests: readonly MemoryRequest[],
  reason: AdmissionReason = EMPTY,
): void {
  for (const { type, bytes } of requests)
    checkLeft(draft, { resource: type, total: bytes, claims: memoryClaims(draft, type) }, reason);
}

const EMPTY = 'EmptyPodSharedPoolError';

/**
 * The kubelet checks this when it makes hints. Under policies that use hints it reports only a
 * failed alignment.
 * @throws ERR_POD_POOL_EMPTY
 */
export function checkLeftByHints(draft: PodDraft): void {
  if (!isStrict(draft.placement)) return;
  checkCpusLeft(draft, 'TopologyAffinityError');
  checkMemoryLeft(draft, memoryRequests(draft, undefined), 'TopologyAffinityError');
}

/** The claims of a pod's containers to what it has of a resource. */
interface Claimed {
  readonly resource: string;
  readonly total: number;
  readonly claims: readonly Claim[];
}

function checkLeft({ pod }: PodDraft, { resource, total, claims }: Claimed, reason: AdmissionReason): void {
  const at = firstUnmet(total, claims);
  if (at < 0) return;
  const { name } = pod.containers[at]!;
  const left =
    claims[at]!.amount === null
      ? `nothing is left to container ${name}, which shares`
      : `too little is left to container ${name}`;
  const message = `exclusive containers use up the pod's ${resource}: ${left}`;
  throw refusal(reason, 'ERR_POD_POOL_EMPTY', message, {
    value: total,
    valid: `a pod with more ${resource} than its exclusive containers have`,
    resource,
  });
}
