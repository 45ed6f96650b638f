// Elastic view: the elastic grants of a state, in the form that {@link elasticTargets} needs. Pure.
import type { Assignments } from '../../account/assignments.js';
import { mixedOfPods } from '../../account/cpus-of-pods.js';
import { isMoving } from '../../account/moves/move-steps.js';
import type { Elasticity, PodAssignment } from '../../account/pod-assignment.js';
import { type CpuPool, poolOf, runningCpus } from '../../account/pod-holdings.js';
import { podsThat } from '../../account/pod-list-changes.js';
import { type CpuSnapshot, freeCpus, sharedPool } from '../../account/pools.js';
import { type ElasticGrant, spareCpus } from '../elastic/elastic-targets.js';

/** A grant that grows and shrinks by itself. */
export type ElasticPod = PodAssignment & { readonly elastic: Elasticity };

const isElastic = (pod: PodAssignment): pod is ElasticPod => pod.elastic !== undefined;

const allElastic = podsThat(isElastic);

/** The elastic grants of a state. */
export const elasticPods = ({ pods }: Pick<Assignments, 'pods'>): readonly ElasticPod[] =>
  allElastic(pods) as readonly ElasticPod[];

/** True if no change of the grant is under way. */
export const isSettled = ({ upcoming, transfer, formerOwner }: PodAssignment): boolean =>
  upcoming === null && transfer === null && formerOwner === null;

/** The grant's bounds and size; while it moves or resizes, the size that it will have. */
export function elasticGrant(pod: ElasticPod): ElasticGrant {
  const target = isMoving(pod) ? pod.upcoming.move.target : null;
  return { uid: pod.uid, ...pod.elastic, cpus: runningCpus(target ?? pod).size };
}

/** The elastic grants with CPUs of one pool, and the free CPUs that they may take there. */
export interface ElasticView {
  readonly grants: readonly ElasticGrant[];
  readonly spare: number;
}

export function elasticView(state: Assignments, present: CpuSnapshot, pool: CpuPool): ElasticView {
  const grants = elasticPods(state)
    .filter((pod) => poolOf(pod) === pool)
    .map(elasticGrant);
  const free = freeCpus(state, present, pool).size;
  if (pool === 'isolated') return { grants, spare: free };
  const shared = sharedPool(state, present).size;
  return { grants, spare: spareCpus({ free, shared, mixed: mixedOfPods(state.pods) }) };
}
