// Parts: the parts of a grant for threads of its process, a feature that the kubelet does not have.
// The record is a pod booked as a whole, with an exclusive container for each part and one that
// shares the rest. Pure.
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { SHARED_CONTAINER } from '../../account/pod-holdings.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import type { PartRequest } from '../../input/requests/request.js';
import type { Draft } from '../draft/draft.js';
import { type Claim, partitionOf } from '../draft/partition.js';
import { claimsAfter, siblings } from './cpu-choices.js';
import { takeOf } from './cpu-manager.js';

/**
 * The grant with its CPUs dealt to parts, by the options that chose them. Memory and devices are
 * not dealt.
 * @throws ERR_SMT_ALIGNMENT if parts must be whole cores and the cores' sizes do not add up
 */
export function withParts(draft: Draft, grant: PodAssignment, parts: readonly PartRequest[]): PodAssignment {
  const [whole] = grant.containers as [ContainerAssignment];
  const { cpus, held, memory } = whole;
  const claims = [...parts.map(({ cpu }) => cpu), null].map((amount): Claim => ({ kind: 'app', amount }));
  const dealt = partitionOf(cpus, claims, (from, count, at) =>
    takeOf(draft, from, count, claimsAfter(claims, at)),
  );
  const share = (part: ContainerAssignment['cpus']) => ({
    cpus: part,
    held: siblings(draft.topology, part).intersection(held),
  });
  const containers = parts.map(({ name, cpu }, i): ContainerAssignment => {
    const request = { cpu: cpu * MILLI };
    return { ...whole, ...share(dealt.parts[i]!), name, memory: [], devices: {}, request };
  });
  const request = { ...whole.request, cpu: dealt.pool.size * MILLI };
  const rest = { ...whole, ...share(dealt.pool), name: SHARED_CONTAINER, isolation: 'pod', request } as const;
  return { ...grant, containers: [...containers, rest], booking: { cpus, held, memory } };
}
