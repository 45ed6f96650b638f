// Resize: a grant of one container gets more CPUs and memory or fewer. Announced on record first,
// then done, so that whoever runs there hears of it before.
import { setTimeout as delay } from 'node:timers/promises';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { hasParts, runningCpus } from '../../account/pod-holdings.js';
import { NumalignError } from '../../base/errors.js';
import { decide } from '../../decision/decision.js';
import { type Resized, type ResizedAmounts, resizedPod, resizeQuestion } from '../../decision/resized-pod.js';
import type { Placement } from '../../input/placement.js';
import type { ResizeRequest } from '../../input/resize.js';
import type { Followers } from '../../threads/followers.js';
import { AdmissionError } from '../admission-error.js';
import { changesUnderWay } from '../changes/changes-under-way.js';
import type { Site } from '../site.js';
import { type EnforcedCommit, reclaim, transact } from '../transact.js';
import { heldGrant } from './held-grant.js';

/**
 * Announces what the grant will have, waits for `noticeMs`, has the threads leave what is lost,
 * commits, and lets them use what is new. What is announced and what it has now are both the
 * grant's meanwhile. A refused resize changes nothing.
 * @throws a rejection as for an admission, ERR_INVALID_ARGUMENT for a pod of several containers,
 *   ERR_GRANT_BUSY, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors, what `followers`
 *   throws
 */
export async function resize<T>(
  site: Site,
  grant: PodAssignment,
  request: ResizeRequest,
  defaults: Placement,
  followers: Followers<T>,
): Promise<{ readonly pod: PodAssignment; readonly followed: T | undefined }> {
  const { uid, containers, booking, resources } = grant;
  // What is booked as a whole is dealt out: nobody could tell which part is to grow. Nor may a
  // container have more than its pod.
  if (containers.length !== 1 || containers[0]!.cpus.isEmpty || booking || resources) {
    const why = hasParts(grant)
      ? 'has parts'
      : resources
        ? 'has resources as a whole'
        : 'is no single container with exclusive CPUs';
    throw new NumalignError('ERR_INVALID_ARGUMENT', `${uid} ${why}: it cannot be resized`, {
      value: uid,
      valid:
        'a grant of acquire without parts, or a pod of one container with exclusive CPUs, without resources as a whole',
    });
  }
  const underWay = site.ledger.registry.of(changesUnderWay);
  if (underWay.has(uid)) throw busy(uid);
  const endChange = underWay.begin(uid);
  // It is announced by the lock of this environment, whosever the grant is.
  const end = site.ledger.use();
  let isAnnounced = false;
  try {
    for (;;) {
      const announced = await announce(site, grant, request, defaults);
      isAnnounced = announced.upcoming !== null;
      if (!isAnnounced) return { pod: announced, followed: undefined };
      await delay(request.noticeMs, undefined, { signal: request.signal }).catch(() => {});
      const done = await transact(site, undefined, (state, commit) =>
        carryOut({ site, state, commit }, current(site, state, grant), request, defaults, followers),
      );
      isAnnounced = false;
      if (done) return done;
    }
  } finally {
    endChange();
    // Every transaction of this process calls off what it has announced and does not do any more:
    // this one need not be waited for.
    if (isAnnounced) reclaim(site).catch(() => {});
    end();
  }
}

/**
 * Puts on record what the grant will have. Where no CPU changes, nobody need hear of it before: the
 * resize is done.
 */
function announce(
  site: Site,
  grant: PodAssignment,
  request: ResizeRequest,
  defaults: Placement,
): Promise<PodAssignment> {
  return transact(site, request.signal, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = current(site, state, grant);
    const resized = decided(site, state, { ...pod, upcoming: null }, request, defaults);
    const [before] = pod.containers;
    const [after] = resized.pod.containers;
    const isSame = after!.cpus.equals(before!.cpus) && after!.held.equals(before!.held);
    return record(isSame ? resized : announcement(site, state, pod, after!), commit);
  });
}

function announcement(
  { ledger }: Site,
  state: Assignments,
  now: PodAssignment,
  after: ContainerAssignment,
): Resized {
  const { name, cpus, held } = after;
  const pod = {
    ...now,
    upcoming: { container: name, cpus, held, by: ledger.owners.recordFor('process').uuid },
  };
  return { pod, next: replacePod(state, pod) };
}

async function record({ pod, next }: Resized, commit: EnforcedCommit): Promise<PodAssignment> {
  await commit(next, true);
  return pod;
}

interface Step {
  readonly site: Site;
  readonly state: Assignments;
  readonly commit: EnforcedCommit;
}

/**
 * Undefined where the announcement is no longer on record: somebody has put back an older state
 * meanwhile.
 */
async function carryOut<T>(
  { site, state, commit }: Step,
  pod: PodAssignment,
  request: ResizeRequest,
  defaults: Placement,
  followers: Followers<T>,
): Promise<{ readonly pod: PodAssignment; readonly followed: T } | undefined> {
  if (pod.upcoming === null) return undefined;
  const cpus = runningCpus(pod);
  let resized: Resized;
  let followed: T | undefined;
  try {
    request.signal?.throwIfAborted();
    // Of CPUs just what was announced; memory may have become scarce since.
    resized = decided(site, state, pod, request, defaults);
    const kept = cpus.intersection(runningCpus(resized.pod));
    if (!kept.equals(cpus)) followed = followers.narrow(kept);
    await record(resized, commit);
  } catch (error) {
    followers.widen(cpus, pod);
    const unchanged = { ...pod, upcoming: null };
    await record({ pod: unchanged, next: replacePod(state, unchanged) }, commit).catch(() => {});
    throw error;
  }
  const after = runningCpus(resized.pod);
  return {
    pod: resized.pod,
    followed: after.isSubsetOf(cpus) && followed ? followed : followers.widen(after, resized.pod),
  };
}

/** The grant as it is on record. @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, ERR_GRANT_BUSY */
function current(site: Site, state: Assignments, grant: PodAssignment): PodAssignment {
  const pod = heldGrant(site, state, grant);
  if (pod.upcoming && !site.ledger.owners.isOwnProcess(pod.upcoming.by)) throw busy(pod.uid);
  return pod;
}

function busy(uid: string): NumalignError {
  return new NumalignError(
    'ERR_GRANT_BUSY',
    `grant ${uid} is being resized already: wait until that is done`,
    {
      value: uid,
    },
  );
}

/** @throws {@link AdmissionError} */
function decided(
  { topology, resources }: Site,
  state: Assignments,
  pod: PodAssignment,
  amounts: ResizedAmounts,
  defaults: Placement,
): Resized {
  const present = cpusNow(topology, state.pods);
  const question = resizeQuestion({ topology, present, resources, state }, pod, amounts, defaults);
  const decision = decide(question);
  if (!decision.admitted) throw new AdmissionError(decision);
  return resizedPod(question, decision);
}
