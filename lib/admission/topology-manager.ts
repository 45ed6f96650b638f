// The Topology Manager: one way from a request to a committed grant, and back.

import {
  type Assignments,
  type ContainerAssignment,
  findPod,
  freeCpus,
  type OwnerRecord,
  type PodAssignment,
  removePods,
  replacePod,
  sharedPool,
  startContainer,
  withoutPods,
} from '../account/assignments.js';
import { withIdentities } from '../account/cpu-identities.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementRequest } from '../account/levels.js';
import { randomUUID } from '../base/builtins.js';
import { display } from '../base/check-options.js';
import { type ErrorCode, NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import {
  type Decision,
  decide,
  decideIn,
  NEVER,
  type Question,
  type Rejection,
  undo,
  withRollback,
} from '../decision/decision.js';
import type { DeviceResources } from '../decision/device-resources.js';
import { type Flag, flagsOf } from '../decision/flags.js';
import type { HintProviders } from '../decision/hint-providers.js';
import { totalsOf } from '../decision/memory-manager.js';
import { survivorsOf } from '../enforcement/descent.js';
import type { Enforcer } from '../enforcement/enforcer.js';
import type { UnpinnedThread } from '../enforcement/shared-members.js';
import type { PodRequest } from '../input/pod-request.js';
import type { AdmissionRequest } from '../input/request.js';
import type { Topology } from '../machine/topology.js';
import { hasEnded } from '../processes/process-identity.js';
import type { Checkpoint } from '../state/files/checkpoint.js';
import type { Commit, Store } from '../state/store.js';
import type { Vacate } from '../threads/vacate.js';
import { publishError } from './diagnostics.js';
import { type Plan, plan, planOfPlaced } from './plan.js';
import { inTurn } from './turns.js';
import { enforcementWarnings, type Warning, warningsOf } from './warnings.js';

/** Where admission happens: a machine, its state, and how the kernel is told. */
export interface Site {
  /** Whose messages they are on the diagnostics channels. */
  readonly managerId: number;
  /** Replaced where CPUs have come that it does not have; see {@link refreshTopology}. */
  topology: Topology;
  readonly ledger: Store;
  readonly enforcer: Enforcer;
  /** Of requests that do not say otherwise. */
  readonly enforcement: EnforcementRequest;
  readonly resources: DeviceResources;
  readonly providers: HintProviders;
  readonly lockTimeoutMs: number;
}

/** A pod on record, and whether it was there before. */
export interface Admission {
  readonly pod: PodAssignment;
  readonly warnings: readonly Warning[];
  readonly alreadyAdmitted: boolean;
}

/**
 * Lock, reload, decide, shared members leave, commit. A pod that is placed stays as it is. A request that waits is tried again in its turn.
 * @throws a rejection (see {@link decide}), what {@link decide} and the ledger throw, ERR_POD_CONFLICT
 */
export function admit(site: Site, request: AdmissionRequest, signal?: AbortSignal): Promise<Admission> {
  if (!request.wait) return transact(site, signal, (...step) => tryAdmit(site, request, ...step));
  return inTurn(site.ledger, signal, (turn) =>
    transact(site, signal, async (state, commit, recorded) => {
      if (turn.isOurs() || placedPod(state, request.pod)) {
        try {
          return await tryAdmit(site, request, state, commit, recorded);
        } catch (error) {
          if (!isShortage(error)) throw error;
        }
      }
      const hopeless = rejectionWhenEmpty(site, request, recorded);
      if (hopeless) throw hopeless;
      turn.wait();
      return undefined;
    }),
  );
}

async function tryAdmit(
  site: Site,
  request: AdmissionRequest,
  state: Assignments,
  commit: EnforcedCommit,
  { pods }: Assignments,
): Promise<Admission> {
  const { ledger, providers } = site;
  const placed = placedPod(state, request.pod);
  if (placed) {
    providers.keep(placed);
    return { pod: placed, warnings: [], alreadyAdmitted: true };
  }
  if (commit.refusal) throw commit.refusal;
  const owner = ledger.owners.recordFor(request.owner);
  const uid = request.pod.uid ?? randomUUID();
  const question = {
    ...questionOf(site, request, state, pods),
    owner,
    uid,
    now: new Date().toISOString(),
    dryRun: false,
  };
  const decision = decideNamed(question);
  if ('error' in decision) throw decision.error;
  const { next } = decision;
  let enforced: Enforced;
  try {
    enforced = await commit(next, providers.isEmpty, {
      request: { ...site.enforcement, ...request.enforcement, isNamed: request.enforcement.enforcement !== undefined },
    });
  } catch (error) {
    const failure = undo(question);
    throw failure !== undefined && error instanceof NumalignError ? withRollback(error, failure) : error;
  }
  const pod = findPod(enforced.next, uid)!;
  providers.keep(pod);
  const warnings = [...warningsOf(pod, question), ...enforcementWarnings(pod, enforced.shortfalls)];
  return { pod, warnings, alreadyAdmitted: false };
}

// `pods`: on record, those of dead owners too.
function questionOf(
  { topology, resources, providers }: Site,
  request: AdmissionRequest,
  state: Assignments,
  pods: readonly PodAssignment[],
) {
  const present = cpusNow(topology, pods);
  return { topology, present, state, request, resources: new Map(resources), providers: providers.list };
}

/** On the CPUs that the last grant of this name had, where they are free and will do; else on any. */
function decideNamed(question: Question): Decision | Rejection {
  const { state, request, topology, present } = question;
  const last = state.lastCpus.find(({ name }) => name === request.pod.name)?.cpus;
  return decide(question, (asked, pool) => {
    const free = freeCpus(state, present, pool).intersection(topology.allowed);
    if (request.isForCaller && last?.isSubsetOf(free)) {
      const again = decideIn({ ...asked, within: last }, pool);
      if ('pod' in again) return again;
    }
    return decideIn(asked, pool);
  });
}

// Rejections that somebody's release can change.
const SHORTAGES: readonly unknown[] = [
  'ERR_INSUFFICIENT_CPUS',
  'ERR_INSUFFICIENT_DEVICES',
  'ERR_INSUFFICIENT_MEMORY',
  'ERR_SHARED_POOL_EMPTY',
  'ERR_SMT_ALIGNMENT',
  'ERR_TOPOLOGY_AFFINITY',
] satisfies readonly ErrorCode[];

function isShortage(error: unknown): boolean {
  return error instanceof NumalignError && SHORTAGES.includes(error.code);
}

/** Why even the empty machine would not admit it; undefined where it would. What custom providers have by then only they know. */
function rejectionWhenEmpty(site: Site, request: AdmissionRequest, state: Assignments): NumalignError | undefined {
  if (!site.providers.isEmpty) return undefined;
  const question = {
    ...questionOf(site, request, withoutPods(state), state.pods),
    owner: PERSISTENT_OWNER,
    uid: randomUUID(),
  };
  const decision = decide({ ...question, now: NEVER, dryRun: true });
  return 'error' in decision ? decision.error : undefined;
}

/** The same decision, on the state as it is, without doing it. @throws ERR_HINT_PROVIDER, ERR_POD_CONFLICT, ERR_STATE_* */
export function planFor(site: Site, request: AdmissionRequest): PlanOnRecord {
  const { topology, ledger, resources, providers } = site;
  const checkpoint = knownCheckpoint(site);
  const { generation, assignments: recorded } = checkpoint;
  const dead = ledger.owners.deadPods(recorded.pods).map((pod) => pod.uid);
  const state = removePods(recorded, new Set(dead));
  const placed = placedPod(state, request.pod);
  if (placed) return onRecord(planOfPlaced(placed), generation);
  const { plan: planned } = plan({
    topology,
    present: cpusNow(topology, recorded.pods),
    state,
    request,
    resources,
    providers: providers.list,
    owner: PERSISTENT_OWNER,
    // The plan's own: a pod of this uid may be on its way to be admitted, and what providers hold for it must stay. Nobody else hears of it.
    uid: providers.isEmpty ? '' : randomUUID(),
    now: NEVER,
    dryRun: true,
  });
  return onRecord(planned, generation);
}

/** The answer of {@link Manager.plan}: a plan, and the generation of the state that it is made for. */
export type PlanOnRecord = Plan & { readonly generation: number };

// Member by member: to add one to a spread object takes many times as long.
function onRecord(plan: Plan, generation: number): PlanOnRecord {
  const { admitted, reason, code, containers, hints, explanation, warnings, exact } = plan;
  return { admitted, reason, code, containers, hints, explanation, warnings, exact, generation };
}

/**
 * What a pod that is admitted again has.
 * @throws ERR_POD_CONFLICT where it asks for something else than before, or has no uid, by which to know it, and the name of another
 */
export function placedPod(
  state: Assignments,
  { uid, name, namespace, containers }: PodRequest,
): PodAssignment | undefined {
  if (uid === undefined) {
    checkNewName(state, namespace, name);
    return undefined;
  }
  const placed = findPod(state, uid);
  if (!placed) return undefined;
  const shape = (list: readonly Pick<ContainerAssignment, 'name' | 'kind'>[], requests: readonly object[]) =>
    JSON.stringify(list.map(({ name, kind }, i) => [name, kind, Object.entries(requests[i]!).sort()]));
  const before = shape(
    placed.containers,
    placed.containers.map(({ request }) => request),
  );
  const now = shape(
    containers,
    containers.map(({ requests }) => requests),
  );
  if (before === now) return placed;
  throw new NumalignError('ERR_POD_CONFLICT', `pod ${uid} is admitted already, with other containers or requests`, {
    value: now,
    valid: before,
  });
}

function checkNewName({ pods }: Assignments, namespace: string | undefined, name: string | undefined): void {
  if (namespace === undefined) return;
  const living = pods.find((pod) => pod.namespace === namespace && pod.name === name);
  if (!living) return;
  const { uid } = living;
  throw new NumalignError(
    'ERR_POD_CONFLICT',
    `pod ${namespace}/${name} is admitted already, as ${uid}: release it first, or give this one a uid (that of the living pod: it stays as it is)`,
    { value: name, valid: uid },
  );
}

/**
 * Ends a grant: threads leave, commit. They leave first, under the lock: until the commit the CPUs are theirs, after it they may be anybody's.
 * @throws ERR_UNKNOWN_GRANT (the threads have left all the same), ERR_OWNER_ALIVE, and the ledger's errors.
 */
export function release<T, R>(site: Site, grant: PodAssignment, vacate: Vacate<T, R>): Promise<R> {
  const { topology, ledger, providers } = site;
  const { uid } = grant;
  return transact(site, undefined, async (state, commit, recorded) => {
    if (commit.refusal) throw commit.refusal;
    const pod = findGrant(recorded, grant);
    if (pod) checkReleasable(site, pod);
    const next = pod ? removePods(state, new Set([uid])) : state;
    const left = vacate.leave(sharedPool(next, cpusNow(topology, recorded.pods)));
    if (!pod) {
      site.enforcer.apply(state, vacate.threads(left));
      throw unknownGrant(uid, state, ledger.path);
    }
    try {
      await commit(next, providers.isEmpty, { unpinned: vacate.threads(left) });
    } catch (error) {
      vacate.comeBack(left);
      throw error;
    }
    tellProviders(providers, pod, next);
    return left;
  }).then((left) => vacate.settled(left));
}

/** Gives this process's share of a grant up: true where a child still lives by it, else the grant is released. @throws ERR_OWNER_SHARED */
export function handOver<T, R>(site: Site, grant: PodAssignment, vacate: Vacate<T, R>): Promise<boolean> {
  const { topology, ledger, providers } = site;
  const { uid } = grant;
  return transact(site, undefined, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = findGrant(state, grant);
    if (!pod) return false;
    checkReleasable(site, pod);
    // From here on it is ours no more, whatever becomes of the commit: the next transaction takes it for what a dead owner has left.
    const isAlive = ledger.owners.handOver(uid);
    const left = vacate.leave(sharedPool(state, cpusNow(topology)));
    if (isAlive) {
      site.enforcer.apply(state, vacate.threads(left));
      return true;
    }
    const next = removePods(state, new Set([uid]));
    await commit(next, providers.isEmpty, { unpinned: vacate.threads(left) });
    tellProviders(providers, pod, next);
    return false;
  });
}

/** The grant as it is on record, if it is there. Another may have come under its uid. */
export function findGrant(state: Assignments, { uid, admittedAt }: PodAssignment): PodAssignment | undefined {
  const pod = findPod(state, uid);
  return pod?.admittedAt === admittedAt ? pod : undefined;
}

/** The same. @throws ERR_UNKNOWN_GRANT; ERR_OWNER_ALIVE where it is somebody else's */
export function heldGrant(site: Site, state: Assignments, grant: PodAssignment): PodAssignment {
  const pod = findGrant(state, grant);
  if (!pod) throw unknownGrant(grant.uid, state, site.ledger.path);
  checkReleasable(site, pod);
  return pod;
}

/** Records that a container has started; answers the pod as it is now. @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE */
export function markStarted(site: Site, grant: PodAssignment, container: string): Promise<PodAssignment> {
  return transact(site, undefined, async (state, commit) => {
    const pod = heldGrant(site, state, grant);
    const next = startContainer(state, pod, container);
    const started = findPod(next, pod.uid)!;
    if (started.containers.some((each, i) => each !== pod.containers[i])) await commit(next, true);
    return started;
  });
}

// The pod is off the record, and the lock still held: a pod of the same uid may be next. @throws ERR_HINT_PROVIDER where a provider fails to give back what it holds for it
function tellProviders(providers: HintProviders, pod: PodAssignment, { pods }: Assignments): void {
  // It may have been admitted by another manager.
  providers.keep(pod);
  const error = providers.releaseAllBut(pods, pod.uid);
  if (error !== undefined) throw error;
}

/** @throws ERR_OWNER_ALIVE where somebody else lives by the grant */
export function checkReleasable({ ledger }: Site, { uid, owner, formerOwner }: PodAssignment): void {
  if (formerOwner !== null && ledger.owners.isProcessAlive(formerOwner)) {
    throw new NumalignError(
      'ERR_OWNER_ALIVE',
      `grant ${uid} is being handed over: threads of the process that had it before may still be on its CPUs`,
      { value: uid },
    );
  }
  if (owner.kind !== 'process' || ledger.owners.isOwn(owner) || !ledger.owners.isAlive(owner)) return;
  throw ownerAlive(uid, owner);
}

/** The error where somebody else's live grant was to be touched. */
export function ownerAlive(uid: string, owner: OwnerRecord): NumalignError {
  const { pid, command } = owner;
  const survivors = survivorsOf([owner]).get(owner.uuid);
  if (survivors) {
    const left = hasEnded(pid!) ? 'has ended' : 'has given it up';
    const named = survivors.map((each) => `process ${each.pid} (${each.command})`).join(', ');
    return new NumalignError(
      'ERR_OWNER_ALIVE',
      `grant ${uid} belongs to process ${pid} (${command}), which ${left}, but what it started still runs on its CPUs: ${named}. End that, and they are free`,
      { value: uid, pid, command, survivors },
    );
  }
  return new NumalignError(
    'ERR_OWNER_ALIVE',
    `grant ${uid} belongs to process ${pid} (${command}), which still runs on its CPUs: end that process, and they are free`,
    { value: uid, pid, command },
  );
}

/** `uid`: what the caller has given for one. */
export function unknownGrant(uid: unknown, { pods }: Assignments, path: string): NumalignError {
  const valid = pods.map((pod) => pod.uid);
  if (typeof uid !== 'string') {
    const message = `a grant is named by its id, a text (grant.id, pod.uid), not ${display(uid)}`;
    return new NumalignError('ERR_INVALID_ARGUMENT', message, { value: uid, valid });
  }
  const named = pods.filter(({ name }) => name === uid).map((pod) => pod.uid);
  const hint = named.length === 0 ? '' : `: that is the name of ${named.join(' and ')}; give the id`;
  return new NumalignError('ERR_UNKNOWN_GRANT', `there is no grant "${uid}" in ${path}${hint}`, { value: uid, valid });
}

/** What does not hold any more of a pod, as things are now; nothing of one that is off the record. */
export function flagsNow(site: Site, { uid, admittedAt }: PodAssignment): readonly Flag[] {
  const { ledger, topology, resources } = site;
  const state = assignmentsOf(site, ledger.read());
  const pod = findPod(state, uid);
  if (pod?.admittedAt !== admittedAt) return [];
  return flagsOf(pod, state, topology, resources, cpusNow(topology));
}

/** Of plans: of pods that stay until they are released. */
export const PERSISTENT_OWNER: OwnerRecord = {
  kind: 'persistent',
  uuid: '',
  pid: null,
  command: null,
  cgroup: null,
  unknown: {},
};

/** What was committed, and of new grants why they have not reached the level of enforcement that was aimed at. */
export interface Enforced {
  readonly next: Assignments;
  readonly shortfalls: readonly string[];
}

export interface CommitOptions {
  /** Of new grants. */
  readonly request?: EnforcementRequest;
  /** Threads of this process whose masks were changed for them before. */
  readonly unpinned?: readonly UnpinnedThread[];
}

/** A commit by which the kernel keeps others off what is taken. @throws as {@link Enforcer.clear} and {@link Commit} */
export interface EnforcedCommit {
  (next: Assignments, isLast?: boolean, options?: CommitOptions): Promise<Enforced>;
  readonly refusal?: NumalignError | undefined;
}

/**
 * One step on the state for all processes: on `state`, without the grants of dead owners; `recorded` still has them. An opener has written the
 * first state, so that there always is one.
 */
export async function transact<T>(
  site: Site,
  signal: AbortSignal | undefined,
  step: (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => Promise<T>,
): Promise<T> {
  const { ledger, topology, providers, lockTimeoutMs } = site;
  let isGivenBack = false;
  const decide = (checkpoint: Checkpoint | undefined, commit: Commit) => {
    const recorded = assignmentsOf(site, checkpoint);
    const write: EnforcedCommit = Object.assign(
      (next: Assignments, isLast = false, options?: CommitOptions) =>
        commitEnforced(site, recorded, next, commit, { isLast, later: () => (isGivenBack = true), ...options }),
      { refusal: commit.refusal },
    );
    // Where nothing can be written nobody can tell either where threads may go that others have left behind.
    const state = commit.refusal ? recorded : withoutDead(site, recorded);
    providers.releaseAllBut(state.pods);
    return step(state, write, recorded);
  };
  try {
    return await ledger.transact({ signal, lockTimeoutMs, totalOn: totalsOf(topology) }, decide);
  } finally {
    if (isGivenBack) await reopen(site);
  }
}

// What was given back, as it is on record by now. A step of its own: the lock of the one before was let go with its commit, whatever keeps this process busy.
async function reopen(site: Site): Promise<void> {
  const { ledger, topology, enforcer, lockTimeoutMs } = site;
  try {
    await ledger.transact({ lockTimeoutMs, totalOn: totalsOf(topology) }, async (checkpoint) => {
      if (checkpoint && !checkpoint.refusal) enforcer.apply(checkpoint.assignments, [], true);
    });
  } catch (error) {
    // It is committed, and must not be taken for undone. What is not open yet is opened by the next change.
    publishError(site, 'apply', error);
  }
}

interface Last {
  readonly isLast?: boolean;
  /** Has what is given back opened once the lock was let go. */
  readonly later?: () => void;
}

/**
 * Has the kernel clear what the next state takes, commits it, and has what it gives back opened to the others: under the lock, so that nobody else clears it
 * meanwhile.
 */
export async function commitEnforced(
  site: Site,
  before: Assignments,
  wanted: Assignments,
  commit: Commit,
  { isLast = false, later, request = site.enforcement, unpinned = [] }: CommitOptions & Last = {},
): Promise<Enforced> {
  const { enforcer, topology } = site;
  const clearing = enforcer.clear(before, wanted, request, unpinned);
  const { next, shortfalls, settle, undo } = clearing instanceof Promise ? await clearing : clearing;
  try {
    await commit(withIdentities(next, before, topology), isLast && (settle === undefined || later !== undefined));
  } catch (error) {
    undo();
    throw error;
  }
  if (isLast && later) {
    if (settle) later();
    return { next, shortfalls };
  }
  try {
    settle?.();
  } catch (error) {
    // It is committed, and must not be taken for undone. What is not open yet is opened by the next change.
    publishError(site, 'apply', error);
  }
  return { next, shortfalls };
}

/** Ends the grants of dead owners, on record too. */
export function reclaim(site: Site): Promise<void> {
  return transact(site, undefined, async (state, commit, recorded) => {
    if (state !== recorded) await commit(state, true);
  });
}

/** What is on record, where that is known for certain. @throws ERR_STATE_CORRUPT where somebody who lives may hold more than is known */
export function knownAssignments(site: Site): Assignments {
  return knownCheckpoint(site).assignments;
}

function knownCheckpoint(site: Site): Checkpoint {
  const checkpoint = existing(site, site.ledger.read());
  if (checkpoint.refusal?.code === 'ERR_STATE_CORRUPT') throw checkpoint.refusal;
  return checkpoint;
}

/** The assignments of a checkpoint. @throws ERR_STATE_CORRUPT where there is none */
export function assignmentsOf(site: Site, checkpoint: Checkpoint | undefined): Assignments {
  return existing(site, checkpoint).assignments;
}

function existing({ ledger }: Site, checkpoint: Checkpoint | undefined): Checkpoint {
  if (checkpoint) return checkpoint;
  throw new NumalignError(
    'ERR_STATE_CORRUPT',
    `the state file in ${ledger.path} was removed while it was in use; nothing is granted without it`,
  );
}

/** The state less the grants of dead owners. Threads that ended Workers have left on their grants' CPUs move to the shared pool first. */
export function withoutDead({ ledger, topology }: Site, state: Assignments): Assignments {
  const { owners } = ledger;
  const pool = sharedPool(state, cpusNow(topology));
  for (const { uid, owner } of owners.orphans(state.pods)) {
    native.undoPin(uid, pool.words);
    native.closeOrphanedOwner(owner.uuid);
  }
  const left = removePods(state, new Set(owners.deadPods(state.pods).map((pod) => pod.uid)));
  return left.pods.filter(({ uid, upcoming }) => upcoming !== null && isOff(uid, upcoming.by)).reduce(callOff, left);

  // Who was to do it is dead, or has failed.
  function isOff(uid: string, by: string): boolean {
    return !owners.isProcessAlive(by) || (owners.isOwnProcess(by) && !RESIZES_UNDER_WAY.has(uid));
  }
}

/** Ids of the grants that this environment is resizing: the others that it has announced will not come. */
export const RESIZES_UNDER_WAY = new Set<string>();

function callOff(state: Assignments, pod: PodAssignment): Assignments {
  return replacePod(state, { ...pod, upcoming: null });
}
