// Admit: the one way from a request to a committed grant.
import { type Assignments, findPod } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementRequest } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods, withoutPods } from '../account/pod-changes.js';
import type { CpuPool } from '../account/pod-holdings.js';
import { freeCpus } from '../account/pools.js';
import { native } from '../base/native.js';
import { isoTime } from '../base/text/iso-time.js';
import { withoutPlaceholder } from '../decision/changes/move-steps.js';
import { type Decision, decide, decideIn, largestQuestion } from '../decision/decision.js';
import { NEVER, type Question, undo } from '../decision/question.js';
import { type Rejection, withFact, withRollback } from '../decision/rejection.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { quietShortfall } from '../quiet/outcome.js';
import { inTurn } from '../state/turns.js';
import { maskWish } from '../threads/mask-wish.js';
import { AdmissionError } from './admission-error.js';
import { publish } from './diagnostics.js';
import { freeForStrict } from './free-hugepages.js';
import type { Host } from './host.js';
import { PERSISTENT_OWNER, placedPod } from './placed-pod.js';
import { isRejected, type Rejected, type Room, withRoom } from './room.js';
import { type Enforced, type EnforcedCommit, FEW_CGROUPS, transact, withoutAnyDead } from './transact.js';
import { enforcementWarnings, type Warning, warningsOf } from './warnings.js';

/** A pod on record, and whether it was there before. */
export interface Admission {
  readonly pod: PodAssignment;
  readonly warnings: readonly Warning[];
  readonly alreadyAdmitted: boolean;
  /** Why it is on its NUMA nodes, if this admission chose them jointly. */
  readonly explanation?: string | null;
  /** True if it replaces a pod of its uid that had another request. */
  readonly replaced?: boolean;
}

/** A request, and what makes room for it; undefined: nothing does. */
interface Attempt {
  readonly request: AdmissionRequest;
  readonly room: Room | undefined;
}

/** A step on the state, see {@link transact}. */
interface Transaction {
  readonly latest: Assignments;
  readonly commit: EnforcedCommit;
  readonly recorded: Assignments;
}

/**
 * Locks, reloads, decides, lets shared members leave, and commits. A placed pod stays as it is. A
 * request without room is tried again if `room` made some. With `wait` it is tried in its turn.
 * @throws {@link AdmissionError}, what {@link decide} and the ledger throw, ERR_POD_CONFLICT
 */
export async function admit(
  host: Host,
  request: AdmissionRequest,
  signal?: AbortSignal,
  room?: Room,
): Promise<Admission> {
  const attempt = { request, room };
  const once = () =>
    transact(
      host,
      signal,
      (state, commit, recorded) => tryAdmit(host, attempt, { latest: state, commit, recorded }),
      FEW_CGROUPS,
    );
  const answer = request.wait ? await admitInTurn(host, attempt, signal) : await withRoom(room, once);
  if (isRejected(answer)) throw new AdmissionError(answer.rejection);
  return answer;
}

function admitInTurn(
  host: Host,
  attempt: Attempt,
  signal: AbortSignal | undefined,
): Promise<Admission | Rejected> {
  const { request, room } = attempt;
  const { pod } = request;
  return inTurn(host.ledger, signal, async (turn) => {
    const answer = await withRoom(room, () =>
      transact(host, signal, async (state, commit, recorded) => {
        let rejected: Rejected | undefined;
        if (turn.isOurs() || placedPod(state, pod)) {
          const answer = await tryAdmit(host, attempt, { latest: state, commit, recorded });
          if (!isRejected(answer) || !answer.shortage) return answer;
          rejected = answer;
        }
        const finalRejection = rejectionWhenEmpty(host, request, recorded);
        if (finalRejection) return { rejection: finalRejection };
        if (turn.wait()) publish('wait', host, () => ({ uid: pod.uid ?? null, name: pod.name ?? null }));
        return rejected;
      }),
    );
    return answer && isRejected(answer) && answer.shortage ? undefined : answer;
  });
}

async function tryAdmit(host: Host, attempt: Attempt, step: Transaction): Promise<Admission | Rejected> {
  const { request, room } = attempt;
  const { latest, commit, recorded } = step;
  const { ledger, providers } = host;
  const state = withoutOwnRoom(host, attempt, latest);
  const again = () => {
    // If nothing may be written, dead owners stay on record: what they left behind is unknown.
    const left = commit.refusal ? undefined : withoutAnyDead(host, latest, recorded);
    return left && tryAdmit(host, attempt, { ...step, latest: left });
  };
  let placed: PodAssignment | undefined;
  try {
    placed = placedPod(state, request.pod);
  } catch (error) {
    const answer = again();
    if (answer) return answer;
    throw error;
  }
  if (placed) {
    const answer = ledger.owners.isAlive(placed.owner) ? undefined : again();
    if (answer) return answer;
    providers.keep(placed);
    return { pod: placed, warnings: [], alreadyAdmitted: true };
  }
  if (commit.refusal) throw commit.refusal;
  const owner = ledger.owners.recordFor(request.owner);
  const uid = request.pod.uid ?? room?.uid ?? native.randomUuid();
  const asked = { owner, uid, now: isoTime(), dryRun: false };
  const question = largestQuestion(questionOf(host, request, state, recorded.pods, asked));
  const decision = decideNamed(question);
  if (!decision.admitted)
    return again() ?? { rejection: decision, shortage: decision.isShortage ? question : undefined };
  const next = decision.next();
  let enforced: Enforced;
  try {
    // Only a commit shows whether required quiet settings hold: another one may have to undo it.
    const isLast = providers.isEmpty && !request.requiredQuiet?.length;
    enforced = await commit(next, isLast, {
      request: aimOf(host, request),
    });
    const shortfall = quietShortfallOf(host, request, enforced.next, uid);
    if (shortfall) {
      await commit(removePods(enforced.next, new Set([uid])));
      throw shortfall;
    }
  } catch (error) {
    throw withRollback(error, undo(question));
  }
  const pod = findPod(enforced.next, uid)!;
  providers.keep(pod);
  const warnings = [...warningsOf(pod, question), ...enforcementWarnings(pod, enforced.shortfalls)];
  return { pod, warnings, alreadyAdmitted: false, explanation: decision.explanation };
}

// A request may take the room that grants made for it. A placeholder of another process under its
// uid counts as any pod.
function withoutOwnRoom({ ledger }: Host, { request, room }: Attempt, state: Assignments): Assignments {
  const uid = request.pod.uid ?? room?.uid;
  const kept = uid === undefined ? undefined : findPod(state, uid);
  return kept && ledger.owners.isOwn(kept.owner) ? withoutPlaceholder(state, kept.uid) : state;
}

/** The enforcement to aim at: the request's, completed by the host's. */
export function aimOf(
  { enforcement: usual }: Pick<Host, 'enforcement'>,
  { enforcement: choice }: Pick<AdmissionRequest, 'enforcement'>,
): EnforcementRequest {
  // The spreads are last: members after them make them many times slower.
  return { isNamed: choice.enforcement !== undefined, ...usual, ...choice };
}

/** The error for required quiet settings that do not hold; undefined if all do. */
export function quietShortfallOf(
  { quieter }: Host,
  request: AdmissionRequest,
  state: Assignments,
  uid: string,
) {
  const { requiredQuiet = [] } = request;
  return requiredQuiet.length > 0 ? quietShortfall(quieter.outcome(state, uid), requiredQuiet) : undefined;
}

const PLANNED = { owner: PERSISTENT_OWNER, uid: '', now: NEVER, dryRun: true };

/** What an admission decides on. `pods`: all on record, including those of dead owners. */
export function questionOf(
  { topology, resources, providers }: Host,
  request: AdmissionRequest,
  state: Assignments,
  pods: readonly PodAssignment[],
  { owner, uid, now, dryRun }: Pick<Question, 'owner' | 'uid' | 'now' | 'dryRun'> = PLANNED,
): Question {
  const present = cpusNow(topology, pods);
  // The mask of this process says nothing of grants for others.
  const keepsToMask = request.isForCaller && request.owner === 'process' && !request.placement.ignoresMask;
  return {
    topology,
    present,
    state,
    request,
    within: keepsToMask ? maskWish(topology, { ...state, pods }, present) : request.within,
    // Others may be registered while it waits for room.
    resources: new Map(resources),
    providers: providers.list,
    owner,
    uid,
    trialUid: providers.isEmpty ? '' : native.randomUuid(),
    now,
    dryRun,
    hugepages: dryRun ? undefined : freeForStrict(request, topology),
  };
}

/** Decides on the CPUs of the last grant of this name if they are free and suffice, else on any. */
function decideNamed(question: Question): Decision | Rejection {
  const { state, request, topology, present } = question;
  const { isForCaller, pod } = request;
  const last = isForCaller ? state.lastCpus.find(({ name }) => name === pod.name)?.cpus : undefined;
  const onLast = (asked: Question, pool: CpuPool): Decision | Rejection => {
    const isFree = last?.isSubsetOf(freeCpus(state, present, pool).intersection(topology.allowed));
    const within = asked.within?.intersection(last!) ?? last;
    const onThem = isFree ? decideIn({ ...asked, within }, pool) : undefined;
    return onThem?.admitted ? onThem : decideIn(asked, pool);
  };
  const decision = decide(question, last && onLast);
  return decision.admitted ? decision : withMask(decision, request.within ? undefined : question.within);
}

// Names the mask, in which the rejection says what is free.
export function withMask(rejection: Rejection, mask: CpuSet | undefined): Rejection {
  if (mask === undefined) return rejection;
  const why = `this process was given the mask ${mask}, to which numalign keeps without ignoreMask (--ignore-mask)`;
  return withFact(rejection, why);
}

/**
 * Why even the empty machine would reject a request; undefined if it would not. With custom
 * providers the answer is unknown: only they know what they would have then.
 */
function rejectionWhenEmpty(
  host: Host,
  request: AdmissionRequest,
  state: Assignments,
): Rejection | undefined {
  if (!host.providers.isEmpty) return undefined;
  const decision = decide(questionOf(host, request, withoutPods(state), state.pods));
  return decision.admitted ? undefined : decision;
}
