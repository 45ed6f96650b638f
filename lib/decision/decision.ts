// Decision: hints, merge, allocate, for each container or for the whole pod. Pure, but for what
// custom hint providers do.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { addPod } from '../account/pod-changes.js';
import type { CpuPool } from '../account/pod-holdings.js';
import { Refusal } from '../base/refusal.js';
import type { IsolationChoice } from '../input/policies.js';
import { podAssignment } from './assignment.js';
import { withParts } from './cpus/parts.js';
import { choiceText } from './joint/choice-text.js';
import { place } from './place.js';
import { begin, memoryOf, type Offer, type Progress } from './progress.js';
import { type Question, underSettings, undo } from './question.js';
import { collectAmounts, type Rejection, rejectionOf, withRollback } from './rejection.js';

/** The answer to a request that is admitted. */
export interface Decision {
  readonly admitted: true;
  readonly pod: PodAssignment;
  /** The state with it: made where it is asked for. */
  readonly next: () => Assignments;
  readonly offers: readonly Offer[];
  /** Why it is on these NUMA nodes; null: as the kubelet places it. */
  readonly explanation: string | null;
}

/** The pools that CPUs are looked for in, one after the other. */
export const POOLS: Readonly<Record<IsolationChoice, readonly [first: CpuPool, ...others: CpuPool[]]>> = {
  never: ['ordinary'],
  prefer: ['isolated', 'ordinary'],
  require: ['isolated'],
};

/**
 * {@link decideIn} one pool after the other, as the request says, until one will do.
 * @throws ERR_INVALID_POD for resources of a whole pod under a kubelet that knows none
 */
export function decide(
  asked: Question,
  decideInPool: (question: Question, pool: CpuPool) => Decision | Rejection = decideIn,
): Decision | Rejection {
  const question = underSettings(asked);
  const [first, other] = POOLS[question.request.placement.isolation];
  const answer = decideInPool(question, first);
  return other === undefined || answer.admitted ? answer : decideInPool(question, other);
}

/**
 * Decides. What custom providers have allocated stays with them only where the pod is admitted.
 * @throws ERR_HINT_PROVIDER for a provider that does not do as it should
 */
export function decideIn(question: Question, pool: CpuPool): Decision | Rejection {
  const progress = begin(question, pool);
  try {
    return admission(progress);
  } catch (error) {
    const amounts = collectAmounts(progress);
    const failure = undo(question);
    if (error instanceof Refusal) return rejectionOf(progress, error, amounts, failure);
    throw withRollback(error, failure);
  }
}

/**
 * As {@link decide}, where nobody asks why not: that takes much longer to find out. undefined: it is
 * not admitted. REQUIRES: custom providers allocate nothing.
 */
export function decideWhether(asked: Question): Decision | undefined {
  const question = underSettings(asked);
  for (const pool of POOLS[question.request.placement.isolation]) {
    try {
      return admission(begin(question, pool));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
  return undefined;
}

// @throws {@link Refusal}
function admission(progress: Progress): Decision {
  place(progress);
  const { question, draft, joint, offers } = progress;
  const { parts = [] } = question.request;
  const whole = podAssignment(progress);
  const pod = parts.length > 0 ? withParts(draft, whole, parts) : whole;
  const memory = memoryOf(progress);
  const next = () => addPod(question.state, pod, memory.booked());
  const isJoint = question.request.placement.choice === 'joint';
  return { admitted: true, pod, next, offers, explanation: isJoint ? choiceText(joint, offers) : null };
}
