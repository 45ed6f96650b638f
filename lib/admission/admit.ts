// Admit: the one way from a request to a committed grant.
import { randomUUID } from 'node:crypto';
import { type Assignments, findPod } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementRequest } from '../account/levels.js';
import { withoutPlaceholder } from '../account/moves/move-steps.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods, withoutPods } from '../account/pod-changes.js';
import { freeCpus } from '../account/pools.js';
import { type Decision, decide, decideIn } from '../decision/decision.js';
import { largestQuestion } from '../decision/elastic-grants/largest-question.js';
import { NEVER, type Question, undo } from '../decision/question.js';
import { type Rejection, withRollback } from '../decision/rejection.js';
import type { AdmissionRequest } from '../input/request.js';
import { quietShortfall } from '../quiet/requirement.js';
import { inTurn } from '../state/turns.js';
import { AdmissionError } from './admission-error.js';
import { publish } from './diagnostics.js';
import { freeForStrict } from './free-hugepages.js';
import { PERSISTENT_OWNER, placedPod } from './placed-pod.js';
import { isRejected, type Rejected, type Room, withRoom } from './room/room.js';
import type { Site } from './site.js';
import { type Enforced, type EnforcedCommit, FEW_CGROUPS, transact, withoutAnyDead } from './transact.js';
import { enforcementWarnings, type Warning, warningsOf } from './warnings.js';

/** A pod on record, and whether it was there before. */
export interface Admission {
  readonly pod: PodAssignment;
  readonly warnings: readonly Warning[];
  readonly alreadyAdmitted: boolean;
  /** Why it is on its NUMA nodes, where they were chosen jointly just now. */
  readonly explanation?: string | null;
  /** It stands for one of its uid that asked for something else. */
  readonly replaced?: boolean;
}

/** Who asks, and who makes room for that; undefined: nobody does. */
interface Asker {
  readonly request: AdmissionRequest;
  readonly room: Room | undefined;
}

/**
 * Lock, reload, decide, shared members leave, commit. A pod that is placed stays as it is. A
 * request for which there is no room is tried again once there is more, and one that waits in its
 * turn.
 * @throws {@link AdmissionError}, what {@link decide} and the ledger throw, ERR_POD_CONFLICT
 */
export async function admit(
  site: Site,
  request: AdmissionRequest,
  signal?: AbortSignal,
  room?: Room,
): Promise<Admission> {
  const asker = { request, room };
  const once = () => transact(site, signal, (...step) => tryAdmit(site, asker, ...step), FEW_CGROUPS);
  const answer = request.wait ? await admitInTurn(site, asker, signal) : await withRoom(room, once);
  if (isRejected(answer)) throw new AdmissionError(answer.rejection);
  return answer;
}

function admitInTurn(
  site: Site,
  asker: Asker,
  signal: AbortSignal | undefined,
): Promise<Admission | Rejected> {
  const { request, room } = asker;
  const { pod } = request;
  return inTurn(site.ledger, signal, async (turn) => {
    const answer = await withRoom(room, () =>
      transact(site, signal, async (state, commit, recorded) => {
        let rejected: Rejected | undefined;
        if (turn.isOurs() || placedPod(state, pod)) {
          const answer = await tryAdmit(site, asker, state, commit, recorded);
          if (!isRejected(answer) || !answer.shortage) return answer;
          rejected = answer;
        }
        const hopeless = rejectionWhenEmpty(site, request, recorded);
        if (hopeless) return { rejection: hopeless };
        if (turn.wait()) publish('wait', site, () => ({ uid: pod.uid ?? null, name: pod.name ?? null }));
        return rejected;
      }),
    );
    return answer && isRejected(answer) && answer.shortage ? undefined : answer;
  });
}

async function tryAdmit(
  site: Site,
  asker: Asker,
  given: Assignments,
  commit: EnforcedCommit,
  recorded: Assignments,
): Promise<Admission | Rejected> {
  const { request, room } = asker;
  const { ledger, providers } = site;
  const state = withoutOwnRoom(site, asker, given);
  const again = () => {
    // As of a transaction: nobody can tell then what dead owners have left behind.
    const left = commit.refusal ? undefined : withoutAnyDead(site, given, recorded);
    return left && tryAdmit(site, asker, left, commit, recorded);
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
  const uid = request.pod.uid ?? room?.uid ?? randomUUID();
  const question = largestQuestion({
    ...questionOf(site, request, state, recorded.pods),
    hugepages: freeForStrict(request, site.topology),
    owner,
    uid,
    now: new Date().toISOString(),
    dryRun: false,
  });
  const decision = decideNamed(question);
  if (!decision.admitted)
    return again() ?? { rejection: decision, shortage: decision.isShortage ? question : undefined };
  const next = decision.next();
  let enforced: Enforced;
  try {
    // What it requires shows only once it is committed: then it may be taken back.
    const isLast = providers.isEmpty && !request.requiredQuiet?.length;
    enforced = await commit(next, isLast, {
      request: aimOf(site, request),
    });
    const shortfall = quietShortfallOf(site, request, enforced.next, uid);
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

// The room that grants have made for it is its own to take. What another process keeps under its uid is
// on record as any pod is.
function withoutOwnRoom({ ledger }: Site, { request, room }: Asker, state: Assignments): Assignments {
  const uid = request.pod.uid ?? room?.uid;
  const kept = uid === undefined ? undefined : findPod(state, uid);
  return kept && ledger.owners.isOwn(kept.owner) ? withoutPlaceholder(state, kept.uid) : state;
}

/** How strongly others are to be kept off. */
export function aimOf(
  { enforcement: usual }: Pick<Site, 'enforcement'>,
  { enforcement: asked }: Pick<AdmissionRequest, 'enforcement'>,
): EnforcementRequest {
  return { ...usual, ...asked, isNamed: asked.enforcement !== undefined };
}

/** What of it is required and not reached, as an error. */
export function quietShortfallOf(
  { quieter }: Site,
  request: AdmissionRequest,
  state: Assignments,
  uid: string,
) {
  const { requiredQuiet = [] } = request;
  return requiredQuiet.length > 0 ? quietShortfall(quieter.outcome(state, uid), requiredQuiet) : undefined;
}

/** What an admission looks at. `pods`: on record, those of dead owners too. */
export function questionOf(
  { topology, resources, providers }: Site,
  request: AdmissionRequest,
  state: Assignments,
  pods: readonly PodAssignment[],
) {
  const present = cpusNow(topology, pods);
  return {
    topology,
    present,
    state,
    request,
    resources: new Map(resources),
    providers: providers.list,
    trialUid: providers.isEmpty ? '' : randomUUID(),
  };
}

/**
 * On the CPUs that the last grant of this name had, where they are free and will do; else on any.
 */
function decideNamed(question: Question): Decision | Rejection {
  const { state, request, topology, present } = question;
  const last = state.lastCpus.find(({ name }) => name === request.pod.name)?.cpus;
  return decide(question, (asked, pool) => {
    const free = freeCpus(state, present, pool).intersection(topology.allowed);
    if (request.isForCaller && last?.isSubsetOf(free)) {
      const again = decideIn({ ...asked, within: last }, pool);
      if (again.admitted) return again;
    }
    return decideIn(asked, pool);
  });
}

/**
 * Why even the empty machine would not admit it; undefined where it would. What custom providers
 * have by then only they know.
 */
function rejectionWhenEmpty(
  site: Site,
  request: AdmissionRequest,
  state: Assignments,
): Rejection | undefined {
  if (!site.providers.isEmpty) return undefined;
  const question = {
    ...questionOf(site, request, withoutPods(state), state.pods),
    owner: PERSISTENT_OWNER,
    uid: '',
  };
  const decision = decide({ ...question, now: NEVER, dryRun: true });
  return decision.admitted ? undefined : decision;
}
