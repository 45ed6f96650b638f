// Plan: a decision that is not carried out, and the state that it is made on.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { CpuSnapshot } from '../account/pools.js';
import type { ErrorCode } from '../base/errors.js';
import { native } from '../base/native.js';
import type { AdmissionReason } from '../base/refusal.js';
import { searchMoves } from '../decision/changes/repacking.js';
import { type RepackingReport, reportOf, withReport } from '../decision/changes/repacking-report.js';
import { roomByShrinking } from '../decision/changes/shrinks.js';
import { decide } from '../decision/decision.js';
import type { Explanation } from '../decision/explanation.js';
import type { Offer } from '../decision/progress.js';
import { NEVER, type Question, undo } from '../decision/question.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import { freeForStrict } from './free-hugepages.js';
import type { ReadOnlyHost } from './host.js';
import { knownCheckpoint, withoutDead } from './on-record.js';
import { PERSISTENT_OWNER, placedPod } from './placed-pod.js';
import { type PodContainer, podContainer } from './pod-container.js';
import { moveTime } from './transact.js';
import { type Warning, warningsOf } from './warnings.js';

/** What pods are planned on: the state on record, without the grants of dead owners. */
export interface PlanningState {
  readonly generation: number;
  readonly state: Assignments;
  readonly present: CpuSnapshot;
}

/** @throws ERR_STATE_CORRUPT if a living owner may hold more than is known */
export function planningState(host: ReadOnlyHost): PlanningState {
  const { generation, assignments } = knownCheckpoint(host);
  const state = withoutDead(host, assignments);
  return { generation, state, present: cpusNow(host.topology, assignments.pods) };
}

/** `uid` identifies the planned pod; custom providers get a random one instead. */
export function planningQuestion(
  { topology, resources, providers }: ReadOnlyHost,
  { state, present }: PlanningState,
  request: AdmissionRequest,
  uid: string,
): Question {
  // Providers may hold something for a pod of this uid that is just being admitted: that must stay.
  const planUid = providers.isEmpty ? uid : native.randomUuid();
  // Lists the members: a spread object with some more takes many times as long.
  return {
    topology,
    present,
    state,
    request,
    within: request.within,
    resources,
    providers: providers.list,
    owner: PERSISTENT_OWNER,
    uid: planUid,
    trialUid: planUid,
    now: NEVER,
    dryRun: true,
    hugepages: freeForStrict(request, topology),
  };
}

/** The answer of a plan. */
export interface Plan {
  /** Whether {@link Manager.admit} would admit the pod now. */
  readonly admitted: boolean;
  /** Why the pod would be rejected, in the kubelet's words; null if it is admitted. */
  readonly reason: AdmissionReason | null;
  /** The error code of {@link Manager.admit}; null if it is admitted. */
  readonly code: ErrorCode | null;
  /** What each container would get; empty if it is rejected. */
  readonly containers: readonly PodContainer[];
  /**
   * The hints that were merged, step by step; empty for an admitted pod and, except with `joint`,
   * with the policy `none`.
   */
  readonly hints: readonly Offer[];
  /** Why it is rejected, see {@link Explanation}; else null. */
  readonly explanation: Explanation | null;
  /** What {@link Pod.warnings} would have. */
  readonly warnings: readonly Warning[];
  /**
   * For a rejection: the grants that would make room, by fewer CPUs of a range or, under the CPU
   * policy `dynamic`, by a move; under that policy also why none would. Else null.
   */
  readonly repacking: RepackingReport | null;
  /** False if there may be a better hint, on a machine of more than 16 NUMA nodes. */
  readonly exact: boolean;
  /** What {@link Grant.explanation} would say. */
  readonly choice: string | null;
}

// What a plan is completed from: a spread that gets no more members is fast.
const NO_PLAN: Plan = {
  admitted: false,
  reason: null,
  code: null,
  containers: [],
  hints: [],
  explanation: null,
  warnings: [],
  repacking: null,
  exact: true,
  choice: null,
};

const admittedPlan = (
  { containers }: PodAssignment,
  { hints, warnings, exact, choice }: Pick<Plan, 'hints' | 'warnings' | 'exact' | 'choice'>,
): Plan => ({
  ...NO_PLAN,
  admitted: true,
  containers: containers.map(podContainer),
  hints,
  warnings,
  exact,
  choice,
});

/** The plan for a pod that is placed already. */
export function planOfPlaced(pod: PodAssignment): Plan {
  return admittedPlan(pod, { hints: [], warnings: [], exact: true, choice: null });
}

/**
 * Decides without effects. `next` returns the state with the pod, if it is admitted.
 * @throws ERR_HINT_PROVIDER
 */
export function plan(question: Question): {
  readonly plan: Plan;
  readonly next: (() => Assignments) | undefined;
} {
  const decision = decide(question);
  const hints = decision.offers;
  const exact = hints.every(({ merged }) => merged.exact);
  if (!decision.admitted) {
    const repacking = decision.isShortage ? repackingFor(question) : null;
    const { code, reason, explanation } = repacking ? withReport(decision, repacking) : decision;
    const found = { reason, code, explanation, repacking };
    const rejected = { ...NO_PLAN, ...found, containers: [], hints, warnings: [], exact };
    return { plan: rejected, next: undefined };
  }
  const failure = undo(question);
  if (failure !== undefined) throw failure;
  const { pod, next, explanation: choice } = decision;
  const warnings = warningsOf(pod, question);
  return { plan: admittedPlan(pod, { hints, warnings, exact, choice }), next };
}

// Follows the order of an admission: grants that shrink by themselves come first.
function repackingFor(question: Question): RepackingReport | null {
  const shrinks = roomByShrinking(question);
  if (shrinks) return reportOf(question, { isFound: true, moves: shrinks, isBounded: false });
  const mayMove = question.request.placement.cpuPolicy === 'dynamic';
  return mayMove ? reportOf(question, searchMoves(question, moveTime())) : null;
}

/**
 * Plans a request on the present state.
 * @throws ERR_HINT_PROVIDER, ERR_POD_CONFLICT, ERR_STATE_*
 */
export function planFor(host: ReadOnlyHost, request: AdmissionRequest): PlanOnRecord {
  const current = planningState(host);
  return onRecord(planOn(host, current, request), current.generation);
}

/** @throws as {@link planFor} */
export function planOn(host: ReadOnlyHost, current: PlanningState, request: AdmissionRequest): Plan {
  const placed = placedPod(current.state, request.pod);
  return placed ? planOfPlaced(placed) : plan(planningQuestion(host, current, request, '')).plan;
}

/**
 * The answer of {@link Manager.plan}: a plan, and the generation of the state that it is made for.
 */
export type PlanOnRecord = Plan & { readonly generation: number };

// Lists the members: a spread object with one more takes many times as long.
export function onRecord(plan: Plan, generation: number): PlanOnRecord {
  const { admitted, reason, code, containers, hints, explanation, warnings, repacking, exact, choice } = plan;
  return {
    admitted,
    reason,
    code,
    containers,
    hints,
    explanation,
    warnings,
    repacking,
    exact,
    choice,
    generation,
  };
}
