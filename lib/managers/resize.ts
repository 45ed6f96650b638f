// Resize: a grant of one container gets more CPUs and memory or fewer. Announced on record first, then done, so that whoever runs there hears of it before.
import { setTimeout as delay } from 'node:timers/promises';
import { type Placement, recordedPlacement } from '../config.js';
import type { CpuSet } from '../cpu-set.js';
import { NumalignError } from '../errors.js';
import { onlineCpus } from '../online-cpus.js';
import { MILLI } from '../pod-request.js';
import type { ResizeRequest } from '../request.js';
import {
  type Assignments,
  type ContainerAssignment,
  findPod,
  type PodAssignment,
  removePods,
  replacePod,
  runningCpus,
  sharedPool,
} from '../state/assignments.js';
import type { Commit } from '../state/store.js';
import { decide } from './decision.js';
import { checkReleasable, type Site, transact, unknownGrant } from './topology-manager.js';

/** The threads of this process that run on the grant. */
export interface Followers<T> {
  /** They leave what the grant loses; called before it does. @throws where one does not */
  narrow(cpus: CpuSet): T;
  /** They may use all of the grant, again or for the first time. */
  widen(cpus: CpuSet): T;
}

// Resizes of this environment that are under way, by grant.
const underWay = new Set<string>();

/**
 * Announces what the grant will have, waits for `noticeMs`, has the threads leave what is lost, commits, and lets them use what is new. What is announced and what
 * it has now are both the grant's meanwhile. A refused resize changes nothing.
 * @throws a rejection as for an admission, ERR_INVALID_ARGUMENT for a pod of several containers, ERR_GRANT_BUSY, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors, what `followers` throws
 */
export async function resize<T>(
  site: Site,
  grant: PodAssignment,
  request: ResizeRequest,
  defaults: Placement,
  followers: Followers<T>,
): Promise<{ readonly pod: PodAssignment; readonly followed: T | undefined }> {
  const { uid, containers } = grant;
  if (containers.length !== 1 || containers[0]!.cpus.isEmpty) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `${uid} is no single container with exclusive CPUs: only that can be resized`,
      {
        value: uid,
        valid: 'a grant of acquire, or a pod of one container with exclusive CPUs',
      },
    );
  }
  if (underWay.has(uid)) throw busy(uid);
  underWay.add(uid);
  try {
    const announced = await transact(site, request.signal, async (state, commit) => {
      const pod = current(site, state, grant);
      const resized = decided(site, state, { ...pod, upcoming: null }, request, defaults);
      const [before] = pod.containers;
      const [after] = resized.pod.containers;
      // Without any change of CPUs there is nobody to tell.
      const isSame = after!.cpus.equals(before!.cpus) && after!.held.equals(before!.held);
      return record(site, isSame ? resized : announcement(site, state, pod, after!), commit);
    });
    if (announced.upcoming === null) return { pod: announced, followed: undefined };
    await delay(request.noticeMs, undefined, { signal: request.signal }).catch(() => {});
    return await transact(site, undefined, (state, commit) =>
      carryOut({ site, state, commit }, current(site, state, grant), request, defaults, followers),
    );
  } finally {
    underWay.delete(uid);
  }
}

interface Resized {
  readonly pod: PodAssignment;
  readonly next: Assignments;
}

function announcement({ ledger }: Site, state: Assignments, now: PodAssignment, after: ContainerAssignment): Resized {
  const { name, cpus, held } = after;
  const pod = { ...now, upcoming: { container: name, cpus, held, by: ledger.owners.recordFor('process').uuid } };
  return { pod, next: replacePod(state, pod) };
}

async function record(
  { ledger, members, topology }: Site,
  { pod, next }: Resized,
  commit: Commit,
): Promise<PodAssignment> {
  const leaving = members.confineTo(sharedPool(next, onlineCpus(topology)));
  if (leaving) await leaving;
  await commit(next, true);
  return pod;
}

interface Step {
  readonly site: Site;
  readonly state: Assignments;
  readonly commit: Commit;
}

async function carryOut<T>(
  { site, state, commit }: Step,
  pod: PodAssignment,
  request: ResizeRequest,
  defaults: Placement,
  followers: Followers<T>,
): Promise<{ readonly pod: PodAssignment; readonly followed: T }> {
  const cpus = runningCpus(pod);
  let resized: Resized;
  let followed: T | undefined;
  try {
    request.signal?.throwIfAborted();
    if (pod.upcoming === null) throw busy(pod.uid);
    // Of CPUs just what was announced; memory may have become scarce since.
    resized = decided(site, state, pod, request, defaults);
    const kept = cpus.intersection(runningCpus(resized.pod));
    if (!kept.equals(cpus)) followed = followers.narrow(kept);
    await record(site, resized, commit);
  } catch (error) {
    followers.widen(cpus);
    const unchanged = { ...pod, upcoming: null };
    // Where even that fails the announcement stands, until this process resizes the grant again or ends.
    await record(site, { pod: unchanged, next: replacePod(state, unchanged) }, commit).catch(() => {});
    throw error;
  }
  const after = runningCpus(resized.pod);
  return { pod: resized.pod, followed: after.isSubsetOf(cpus) && followed ? followed : followers.widen(after) };
}

/** The grant as it is on record. @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, ERR_GRANT_BUSY */
function current(site: Site, state: Assignments, { uid, admittedAt }: PodAssignment): PodAssignment {
  const pod = findPod(state, uid);
  if (!pod || pod.admittedAt !== admittedAt) throw unknownGrant(uid, state, site.ledger.path);
  checkReleasable(site, pod);
  // An announcement of our own that is not under way any more was never carried out.
  if (pod.upcoming && pod.upcoming.by !== site.ledger.owners.recordFor('process').uuid) throw busy(uid);
  return pod;
}

function busy(uid: string): NumalignError {
  return new NumalignError('ERR_GRANT_BUSY', `grant ${uid} is being resized already: wait until that is done`, {
    value: uid,
  });
}

/** @throws a rejection */
function decided(
  { topology, resources }: Site,
  state: Assignments,
  pod: PodAssignment,
  { cpu, memory }: ResizeRequest,
  defaults: Placement,
): Resized {
  const [now] = pod.containers as [ContainerAssignment];
  const requests = {
    ...now.request,
    ...(cpu !== undefined && { cpu: cpu * MILLI }),
    ...(memory !== undefined && { memory }),
  };
  const container = { name: now.name, kind: now.kind, requests };
  const decision = decide({
    topology,
    online: onlineCpus(topology),
    state: removePods(state, new Set([pod.uid])),
    request: {
      pod: { uid: pod.uid, name: pod.name, qosClass: 'Guaranteed', containers: [container] },
      owner: 'process',
      placement: recordedPlacement(pod, defaults),
      isForCaller: true,
      wait: false,
    },
    resources,
    // What they hold for the pod stays as it is.
    providers: [],
    owner: pod.owner,
    uid: pod.uid,
    now: new Date(0),
    dryRun: false,
    resized: pod,
  });
  if ('error' in decision) throw decision.error;
  const [{ cpus, held, hint, memory: blocks }] = decision.pod.containers as [ContainerAssignment];
  // Memory that is not asked for anew stays booked where it is.
  const isBookedAnew = blocks.length > 0 || requests.memory !== now.request.memory;
  const after = { ...now, request: requests, cpus, held, hint, memory: isBookedAnew ? blocks : now.memory };
  const resized = { ...pod, upcoming: null, containers: [after] };
  return { pod: resized, next: replacePod(state, resized, isBookedAnew ? decision.next.memory : state.memory) };
}
