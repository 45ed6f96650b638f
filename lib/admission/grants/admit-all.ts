// AdmitAll: several pods in one transaction, all of them or none.
import { type Assignments, findPod } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { NumalignError, reworded } from '../../base/errors.js';
import { native } from '../../base/native.js';
import { withoutPlaceholder } from '../../decision/changes/move-steps.js';
import { decide } from '../../decision/decision.js';
import { type Question, undo } from '../../decision/question.js';
import { withRollback } from '../../decision/rejection.js';
import type { Placement } from '../../input/placement.js';
import type { PodSpec } from '../../input/pods/pod-spec.js';
import { type AdmissionRequest, parseAdmit } from '../../input/requests/request.js';
import { ADMIT_OPTIONS, type AdmitOptions } from '../../input/requests/request-options.js';
import { option } from '../../input/values/option-values.js';
import { AdmissionError } from '../admission-error.js';
import { type Admission, aimOf, questionOf, quietShortfallOf } from '../admit.js';
import { freeForStrict } from '../free-hugepages.js';
import type { Host } from '../host.js';
import { placedOrOld } from '../placed-pod.js';
import { isRejected, type Rejected, type Room, withRoom } from '../room.js';
import { type EnforcedCommit, transact } from '../transact.js';
import { enforcementWarnings, warningsOf } from '../warnings.js';
import { checkReleasable } from './held-grant.js';

/** The options of {@link Manager.admitAll}, for all pods of the list. */
export interface AdmitAllOptions extends Omit<AdmitOptions, 'wait'> {
  /**
   * Replaces a pod that is admitted with another request, in the same step; its CPUs count as free.
   * Otherwise such a pod causes ERR_POD_CONFLICT.
   * @default `false`
   */
  replace?: boolean;
}

/** Pods that are admitted together. */
export interface Batch {
  readonly requests: readonly AdmissionRequest[];
  readonly replace: boolean;
}

const OPTIONS = [...ADMIT_OPTIONS.filter((name) => name !== 'wait'), 'replace'];

/** @throws ERR_INVALID_OPTION, ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_POD_CONFLICT */
export function parseBatch(pods: readonly PodSpec[], options: AdmitAllOptions, placement: Placement): Batch {
  if (!Array.isArray(pods)) invalidOption('pods', pods, 'a list of pods');
  const { replace = false, ...common } = checkOptions(options, OPTIONS, 'admitAll');
  const requests = pods.map((pod, index) => about(index, () => parseAdmit(pod, common, placement)));
  checkUids(requests);
  return { requests, replace: option.flag(replace, 'replace') };
}

function checkUids(requests: readonly AdmissionRequest[]): void {
  const places = new Map<string, number>();
  for (const [index, { pod }] of requests.entries()) {
    if (pod.uid === undefined) continue;
    const other = places.get(pod.uid);
    if (other !== undefined) {
      const message = `pods ${other} and ${index} of the list have the same uid ${pod.uid}`;
      throw new NumalignError('ERR_POD_CONFLICT', message, { value: pod.uid, index });
    }
    places.set(pod.uid, index);
  }
}

// Adds the index of the pod to an error.
function about<T>(index: number, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    throw reworded(error, error.message, { index, cause: error });
  }
}

/** The decision for one pod. */
interface PodDecision {
  /** The state with the pod. */
  readonly next: Assignments;
  /** The pod, if it is on record already. */
  readonly placed?: PodAssignment;
  /** The question, if the pod is new. */
  readonly question?: Question;
  /** The pod that it replaces. */
  readonly old?: PodAssignment | undefined;
  readonly explanation?: string | null;
}

/**
 * Locks, reloads, decides for one pod after the other, lets shared members leave, and commits once.
 * Placed pods stay as they are. If one is rejected, all are tried again once `room` made some.
 * @throws {@link AdmissionError} and what {@link admit} throws, with the `index` of the pod; none
 *   of them is admitted then
 */
export async function admitAll(
  host: Host,
  batch: Batch,
  signal?: AbortSignal,
  room?: Room,
): Promise<readonly Admission[]> {
  const answer = await withRoom(room, () => tryAdmitAll(host, batch, signal, room));
  if (isRejected(answer)) throw new AdmissionError(answer.rejection);
  return answer;
}

function tryAdmitAll(
  host: Host,
  batch: Batch,
  signal: AbortSignal | undefined,
  room: Room | undefined,
): Promise<readonly Admission[] | Rejected> {
  return transact(host, signal, async (latest, commit, recorded) => {
    const { providers } = host;
    const [first] = batch.requests;
    if (!first) return [];
    const state = room ? withoutPlaceholder(latest, room.uid) : latest;
    const base = questionOf(host, first, state, recorded.pods);
    const steps = decideAll({ host, batch, commit, base }, state);
    if (isRejected(steps)) return steps;
    const questions = steps.flatMap(({ question }) => question ?? []);
    if (questions.length === 0) return steps.map((step) => admissionOf(host, step, state, []));
    try {
      const required = batch.requests.find(({ requiredQuiet }) => requiredQuiet?.length);
      const { next, shortfalls } = await commit(steps.at(-1)!.next, providers.isEmpty && !required, {
        request: aimOf(host, first),
      });
      // Only a commit shows whether required quiet settings hold. If one does not, all pods are undone.
      for (const { uid, request } of questions) {
        const shortfall = quietShortfallOf(host, request, next, uid);
        if (!shortfall) continue;
        const { pods, memory, lastCpus } = state;
        await commit({ ...next, pods, memory, lastCpus });
        about(batch.requests.indexOf(request), () => {
          throw shortfall;
        });
      }
      return steps.map((step) => admissionOf(host, step, next, shortfalls));
    } catch (error) {
      throw withUndone(error, questions);
    }
  });
}

interface BatchContext {
  readonly host: Host;
  readonly batch: Batch;
  readonly commit: EnforcedCommit;
  /** What the questions of all pods share. */
  readonly base: Question;
}

function decideAll(context: BatchContext, state: Assignments): PodDecision[] | Rejected {
  const steps: PodDecision[] = [];
  try {
    for (const [index, request] of context.batch.requests.entries()) {
      const step = about(index, () => decideNext(context, request, steps.at(-1)?.next ?? state));
      if (isRejected(step)) return rejectedAt(index, step, steps);
      steps.push(step);
    }
    return steps;
  } catch (error) {
    throw withUndone(
      error,
      steps.flatMap(({ question }) => question ?? []),
    );
  }
}

function rejectedAt(
  index: number,
  { rejection, shortage }: Rejected,
  before: readonly PodDecision[],
): Rejected {
  const failure = undoAll(before.flatMap(({ question }) => question ?? []));
  const rejected = { ...rejection, facts: { ...rejection.facts, index } };
  if (failure !== undefined) throw withRollback(new AdmissionError(rejected), failure);
  return { rejection: rejected, shortage };
}

function decideNext(
  { host, batch, commit, base }: BatchContext,
  request: AdmissionRequest,
  state: Assignments,
): PodDecision | Rejected {
  const { ledger, topology } = host;
  const { uid } = request.pod;
  const { placed, old } = placedOrOld(state, request.pod, batch.replace);
  if (placed) return { next: state, placed };
  if (commit.refusal) throw commit.refusal;
  if (old) checkReplaceable(host, old);
  const question: Question = {
    ...base,
    request,
    within: request.within,
    state: old ? removePods(state, new Set([old.uid])) : state,
    hugepages: freeForStrict(request, topology),
    owner: ledger.owners.recordFor(request.owner),
    uid: uid ?? native.randomUuid(),
    now: momentAfter(old?.admittedAt),
    dryRun: false,
  };
  const decision = decide(question);
  if (!decision.admitted) {
    const { isShortage } = decision;
    return { rejection: decision, shortage: isShortage ? question : undefined };
  }
  return { next: decision.next(), question, old, explanation: decision.explanation };
}

// The uid and the time of admission identify a grant: a successor needs a later time.
function momentAfter(earlier: string | undefined): string {
  const now = Date.now();
  return new Date(earlier === undefined ? now : Math.max(now, Date.parse(earlier) + 1)).toISOString();
}

function checkReplaceable(host: Host, old: PodAssignment): void {
  checkReleasable(host, old);
  // Providers know pods by their uid: releasing the old one would release the new one too.
  if (!host.providers.isEmpty) invalidOption('replace', true, 'left out if there are custom hint providers');
}

// Returns the first error.
const undoAll = (questions: readonly Question[]): unknown =>
  questions.map(undo).find((each) => each !== undefined);

const withUndone = (error: unknown, questions: readonly Question[]): unknown =>
  withRollback(error, undoAll(questions));

function admissionOf(
  { providers }: Host,
  { placed, question, old, explanation = null }: PodDecision,
  state: Assignments,
  shortfalls: readonly string[],
): Admission {
  const pod = placed ?? findPod(state, question!.uid)!;
  providers.keep(pod);
  if (placed) return { pod, warnings: [], alreadyAdmitted: true };
  const enforcement = cpusOf(pod).isEmpty ? [] : enforcementWarnings(pod, shortfalls);
  const warnings = [...warningsOf(pod, question!), ...enforcement];
  return { pod, warnings, alreadyAdmitted: false, replaced: old !== undefined, explanation };
}
