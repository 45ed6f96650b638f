// Resize: gives a grant of one container more CPUs and memory, or fewer. It announces the change on
// record first, so that processes on the grant can prepare.
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
import type { ResizeRequest } from '../../input/requests/resize.js';
import type { Followers } from '../../threads/followers.js';
import { AdmissionError } from '../admission-error.js';
import { changesUnderWay } from '../changes-under-way.js';
import type { Site } from '../site.js';
import { type EnforcedCommit, reclaim, transact } from '../transact.js';
import { heldGrant } from './held-grant.js';

/**
 * Announces the CPUs that the grant will have, waits for `noticeMs`, lets threads leave lost CPUs,
 * commits, and lets threads use new ones. Meanwhile the grant has both its present and the
 * announced CPUs. A rejected resize changes nothing.
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
  // Resources that are booked as a whole are divided, and it is unknown which share should grow. A
  // container may not have more than its pod.
  if (containers.length !== 1 || containers[0]!.cpus.isEmpty || booking || resources) {
    const why = hasParts(grant)
      ? 'has parts'
      : resources
        ? 'has resources as a whole'
        : 'is not a single container with exclusive CPUs';
    throw new NumalignError('ERR_INVALID_ARGUMENT', `${uid} ${why}: it cannot be resized`, {
      value: uid,
      valid:
        'a grant of acquire without parts, or a pod of one container with exclusive CPUs, without resources as a whole',
    });
  }
  const underWay = site.ledger.registry.of(changesUnderWay);
  if (underWay.has(uid)) throw busy(uid);
  const endChange = underWay.begin(uid);
  // The announcement is void without the lock of this environment: a use of the state keeps it.
  const endUse = site.ledger.use();
  let isAnnounced = false;
  try {
    for (;;) {
      const announced = await announce(site, grant, request, defaults);
      isAnnounced = announced.upcoming !== null;
      if (!isAnnounced) return { pod: announced, followed: undefined };
      await delay(request.noticeMs, undefined, { signal: request.signal }).catch(() => {});
      const result = await transact(site, undefined, (state, commit) =>
        carryOut({ site, state, commit }, currentGrant(site, state, grant), request, defaults, followers),
      );
      isAnnounced = false;
      if (result) return result;
    }
  } finally {
    endChange();
    // Any transaction of this process calls off changes that it announced and gave up, so that
    // there is no need to wait for this one.
    if (isAnnounced) reclaim(site).catch(() => {});
    endUse();
  }
}

/**
 * Records the CPUs that the grant will have. If no CPU changes, there is nothing to prepare for,
 * and the resize is done.
 */
function announce(
  site: Site,
  grant: PodAssignment,
  request: ResizeRequest,
  defaults: Placement,
): Promise<PodAssignment> {
  return transact(site, request.signal, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = currentGrant(site, state, grant);
    const resized = decideResize(site, state, { ...pod, upcoming: null }, request, defaults);
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

/** Resolves with undefined if the announcement is gone, because an older state came back. */
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
    // This decides on the announced CPUs, but memory may have become scarce since.
    resized = decideResize(site, state, pod, request, defaults);
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
function currentGrant(site: Site, state: Assignments, grant: PodAssignment): PodAssignment {
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
function decideResize(
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
