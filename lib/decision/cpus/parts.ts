// Parts: what a grant has dealt out among the threads of its process. numalign's own: a grant with
// parts is on record as a pod that is booked as a whole, with an exclusive container for each part
// and one that shares what they leave. Pure.
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { SHARED_CONTAINER } from '../../account/pod-holdings.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import type { PartRequest } from '../../input/request.js';
import { type Claim, partitionOf } from '../pod-level/partition.js';
import { siblings } from './cpu-choices.js';
import { takeOf } from './cpu-manager.js';
import type { Draft } from './draft.js';

/**
 * The grant, with its CPUs dealt out by the options that these were chosen by; memory and devices
 * are not dealt out.
 * @throws ERR_SMT_ALIGNMENT where they must be whole cores, and these are of sizes that do not add up
 */
export function withParts(draft: Draft, grant: PodAssignment, parts: readonly PartRequest[]): PodAssignment {
  const [whole] = grant.containers as [ContainerAssignment];
  const { cpus, held, memory } = whole;
  const claims = [...parts.map(({ cpu }) => cpu), null].map((amount): Claim => ({ kind: 'app', amount }));
  const dealt = partitionOf(cpus, claims, (from, count) => takeOf(draft, from, count));
  const share = (own: ContainerAssignment['cpus']) => ({
    cpus: own,
    held: siblings(draft.topology, own).intersection(held),
  });
  const containers = parts.map(
    ({ name, cpu }, i): ContainerAssignment => ({
      ...{ ...whole, ...share(dealt.parts[i]!), name, memory: [], devices: {} },
      request: { cpu: cpu * MILLI },
    }),
  );
  const request = { ...whole.request, cpu: dealt.pool.size * MILLI };
  const rest = { ...whole, ...share(dealt.pool), name: SHARED_CONTAINER, isolation: 'pod', request } as const;
  return { ...grant, containers: [...containers, rest], booking: { cpus, held, memory } };
}
