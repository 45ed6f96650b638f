// Decision: hints, merge and allocation, for each container or for the whole pod. Pure, except for
// custom hint providers.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { addPod } from '../account/pod-changes.js';
import { type CpuPool, memoryOf as memoryOfPod, presentCpus } from '../account/pod-holdings.js';
import { freeCpus } from '../account/pools.js';
import { Refusal, unlessRefusal } from '../base/refusal.js';
import { cpusNamed } from '../base/text/cpus-named.js';
import { preferenceOf } from '../input/placement.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import type { IsolationPolicy } from '../input/policies.js';
import { MILLI } from '../input/values/quantity.js';
import { CpuSet } from '../machine/cpu-set.js';
import { podAssignment } from './assignment.js';
import { kindsText, machinesToTry } from './cpus/core-kinds.js';
import { podExclusiveCount } from './cpus/cpu-choices.js';
import { withParts } from './cpus/parts.js';
import { bookedIn } from './draft/memory-draft.js';
import { choiceText } from './joint/choice-text.js';
import { tiersToTry } from './memory/memory-tiers.js';
import { place } from './place-pod.js';
import { begin, memoryOf, type Offer, type Progress } from './progress.js';
import { listsHints, type Question, underSettings, undo } from './question.js';
import { collectAmounts, type Rejection, rejectionOf, withFact, withRollback } from './rejection.js';

/** The answer to an admitted request. */
export interface Decision {
  readonly admitted: true;
  readonly pod: PodAssignment;
  /** Returns the state with the pod; computed on demand. */
  readonly next: () => Assignments;
  readonly offers: readonly Offer[];
  /** Why the pod is on these NUMA nodes; null if it is placed as the kubelet would. */
  readonly explanation: string | null;
}

/** The pools to try for CPUs, in this order. */
export const POOLS: Readonly<Record<IsolationPolicy, readonly [first: CpuPool, ...others: CpuPool[]]>> = {
  never: ['ordinary'],
  prefer: ['isolated', 'ordinary'],
  require: ['isolated'],
};

const NO_CPUS = CpuSet.EMPTY;

/**
 * Decides in every pool, kind of cores and list of memory tiers that the request allows, in this order,
 * until the pod is admitted. Returns the last answer.
 */
function tryEach<Refused extends Rejection | undefined>(
  question: Question,
  decideInPool: (question: Question, pool: CpuPool) => Decision | Refused,
): Decision | Refused {
  const { topology, request, resized, within } = question;
  const { pod, placement } = request;
  const { coreKind, isolation, memoryTiers: allTiers } = placement;
  const hasKinds = topology.coreKinds.length > 1 || coreKind === 'efficiency';
  const present = resized && hasKinds ? presentCpus(resized).intersection(topology.cpus) : NO_CPUS;
  const machines =
    hasKinds && podExclusiveCount(pod, placement) > 0
      ? machinesToTry(topology, { coreKind, within, present })
      : [question];
  const tiers = tiersToTry(topology, allTiers, resized && memoryOfPod(resized));
  let answer: Decision | Refused | undefined;
  for (const pool of POOLS[isolation]) {
    for (const machine of machines) {
      const isWhole = machine.topology === topology && machine.within === within;
      const onMachine = isWhole
        ? question
        : { ...question, topology: machine.topology, within: machine.within };
      for (const memoryTiers of tiers) {
        const isAll = memoryTiers === allTiers;
        answer = decideInPool(isAll ? onMachine : { ...onMachine, memoryTiers }, pool);
        if (answer?.admitted) return answer;
      }
    }
  }
  return answer as Refused;
}

/**
 * Tries {@link decideIn} for each pool and kind of cores that the request allows, until one admits
 * the pod.
 * @throws ERR_INVALID_POD for pod-level resources under a kubelet version without them
 */
export function decide(
  request: Question,
  decideInPool: (question: Question, pool: CpuPool) => Decision | Rejection = decideIn,
): Decision | Rejection {
  const question = underSettings(request);
  const answer = tryEach(question, decideInPool);
  return answer.admitted ? answer : withWithin(question, withKinds(question, answer));
}

// A request for some kinds alone is rejected although others may have room.
function withKinds({ topology, state, present, request }: Question, rejection: Rejection): Rejection {
  const { coreKind } = request.placement;
  if (coreKind === 'best' || coreKind === 'any') return rejection;
  const { reason, explanation } = rejection;
  const kinds = kindsText(topology, freeCpus(state, present));
  if (coreKind === 'efficiency' && topology.coreKinds.length === 1) {
    const why = `${coreKind} cores requested: ${kinds}`;
    return { ...rejection, message: why, explanation: { ...explanation, text: `${reason}: ${why}` } };
  }
  return withFact(rejection, kinds);
}

function withWithin({ request: { within } }: Question, rejection: Rejection): Rejection {
  return within ? withFact(rejection, `to be chosen from ${cpusNamed(within)} only`) : rejection;
}

/**
 * Decides in one pool. Rolls back custom providers unless the pod is admitted.
 * @throws ERR_HINT_PROVIDER for a provider that breaks its contract
 */
export function decideIn(question: Question, pool: CpuPool): Decision | Rejection {
  const progress = begin(question, pool);
  try {
    return admission(progress);
  } catch (error) {
    if (error instanceof Refusal && !listsHints(question))
      return decideIn({ ...question, mustList: true }, pool);
    const amounts = collectAmounts(progress);
    const failure = undo(question);
    if (error instanceof Refusal) return rejectionOf(progress, error, amounts, failure);
    throw withRollback(error, failure);
  }
}

/**
 * Like {@link decide}, but skips the costly explanation of a rejection. Returns undefined if the
 * pod is not admitted. REQUIRES: custom providers allocate nothing.
 */
export const decideWhether = (question: Question): Decision | undefined =>
  tryEach(underSettings(question), (attempt, pool) => unlessRefusal(() => admission(begin(attempt, pool))));

// Throws a {@link Refusal} if the pod is not admitted.
function admission(progress: Progress): Decision {
  place(progress);
  const { question, draft, joint, offers } = progress;
  const { parts, placement } = question.request;
  const whole = podAssignment(progress);
  const pod = parts?.length ? withParts(draft, whole, parts) : whole;
  const next = () => addPod(question.state, pod, bookedIn(draft.state, memoryOf(progress)));
  const isJoint = placement.nodeChoice === 'joint';
  return {
    admitted: true,
    pod,
    next,
    offers,
    explanation: isJoint ? choiceText(joint, offers, preferenceOf(placement)) : null,
  };
}

/**
 * The question with the largest number of CPUs that would be admitted. Unchanged if the request
 * gives no range, or nothing above the minimum would be admitted.
 */
export function largestQuestion<Q extends Question>(question: Q): Q {
  const { request, present, providers } = question;
  const { pod, elastic } = request;
  // Custom providers cannot allocate for a trial.
  if (!elastic || providers.length > 0) return question;
  const [container] = pod.containers as [ContainerRequest];
  const within = kindOfLeast(question);
  for (let cpu = Math.min(elastic.max, present.online.size); cpu > elastic.min; cpu--) {
    const requests = { ...container.requests, cpu: cpu * MILLI };
    const larger = {
      ...question,
      request: { ...request, pod: { ...pod, containers: [{ ...container, requests }] } },
    };
    if (decideWhether({ ...larger, within })) return larger;
  }
  return question;
}

// The CPUs of the kind of cores that the least number gets, where the larger one stays.
function kindOfLeast({ topology, within, ...rest }: Question): CpuSet | undefined {
  if (topology.coreKinds.length === 1) return within;
  const least = { topology, within, ...rest };
  const pod = decideWhether(least)?.pod;
  const kind = topology.coreKinds.find(({ cpus }) => pod && presentCpus(pod).isSubsetOf(cpus));
  return kind && rest.request.placement.coreKind !== 'any' ? kind.cpus : within;
}
