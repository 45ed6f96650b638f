// Elastic grants: those of a state with their shares, and one of them with another number of CPUs.
// Pure.
import type { Assignments } from '../../account/assignments.js';
import { memoryBlocks } from '../../account/booked-memory.js';
import { mixedOfPods } from '../../account/cpus-of-pods.js';
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { ContainerAssignment, Elasticity, PodAssignment } from '../../account/pod-assignment.js';
import { type CpuPool, isMoving, poolOf, runningCpus } from '../../account/pod-holdings.js';
import { podsThat } from '../../account/pod-list-changes.js';
import { type CpuSnapshot, freeCpus, sharedPool } from '../../account/pools.js';
import { unlessRefusal } from '../../base/refusal.js';
import { DEFAULT_PLACEMENT, recordedPlacement } from '../../input/placement.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { cpusOfSameKinds } from '../cpus/core-kinds.js';
import { siblings } from '../cpus/cpu-choices.js';
import { takeOf } from '../cpus/cpu-manager.js';
import { decideWhether } from '../decision.js';
import {
  type Resized,
  type ResizeFacts,
  type ResizeQuestion,
  resizedPod,
  resizeQuestion,
} from '../resized-pod.js';
import { type ElasticGrant, spareCpus } from './elastic-targets.js';

/** A grant that grows and shrinks by itself. */
export type ElasticPod = PodAssignment & { readonly elastic: Elasticity };

const isElastic = (pod: PodAssignment): pod is ElasticPod => pod.elastic !== undefined;

const allElastic = podsThat(isElastic);

/** The elastic grants of a state. */
export const elasticPods = ({ pods }: Pick<Assignments, 'pods'>): readonly ElasticPod[] =>
  allElastic(pods) as readonly ElasticPod[];

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

/**
 * The grant resized to `cpu` CPUs; undefined if its policy refuses that, or the CPUs are not free.
 * `near`: the only CPUs that it may give up.
 */
export function elasticSize(
  input: ResizeFacts,
  pod: ElasticPod,
  cpu: number,
  near?: CpuSet,
): Resized | undefined {
  const before = near ? withKept(input, pod, cpu, near) : pod;
  const question = before && resizeQuestion(input, before, { cpu }, DEFAULT_PLACEMENT);
  const decision = question && decideWhether({ ...question, within: roomOf(input, question) });
  if (!decision) return undefined;
  const resized = resizedPod(question, decision);
  return isSameMemory(resized.pod, pod) ? resized : undefined;
}

// It grows on its kinds of cores, unless it asked for any.
function roomOf({ topology, within }: ResizeFacts, { resized, request }: ResizeQuestion) {
  if (request.placement.coreKind === 'any') return within;
  const kinds = cpusOfSameKinds(topology, runningCpus(resized));
  return within?.intersection(kinds) ?? kinds;
}

const isSameMemory = (a: PodAssignment, b: PodAssignment) =>
  JSON.stringify(memoryBlocks([a])) === JSON.stringify(memoryBlocks([b]));

// The grant with the CPUs that it keeps as announced ones: a decision does not choose these again.
function withKept(
  { topology, state }: ResizeFacts,
  pod: ElasticPod,
  cpu: number,
  near: CpuSet,
): ElasticPod | undefined {
  const { cpus, held } = pod.containers[0]!;
  const placement = recordedPlacement(pod, DEFAULT_PLACEMENT);
  const from = cpus.intersection(near).difference(kubeletCpus(state.kubelet));
  if (from.size < cpus.size - cpu) return undefined;
  const given = unlessRefusal(() => takeOf({ topology, placement }, from, cpus.size - cpu));
  // Whole cores do not add up to that.
  if (given === undefined) return undefined;
  const kept = cpus.difference(given);
  const heldStill = placement.holdSiblings ? siblings(topology, kept).intersection(held) : held;
  const [{ name }] = pod.containers as [ContainerAssignment];
  return { ...pod, upcoming: { container: name, cpus: kept, held: heldStill, by: pod.owner.uuid } };
}
