// Resize: gives a grant of one container more CPUs and memory, or fewer. It announces the change on
// record first, so that processes on the grant can prepare.
import { setTimeout as delay } from 'node:timers/promises';
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { hasParts, runningCpus } from '../../account/pod-holdings.js';
import { NumalignError } from '../../base/errors.js';
import { decide } from '../../decision/decision.js';
import { type Resized, resizedPod, resizeQuestion } from '../../decision/resized-pod.js';
import type { Placement } from '../../input/placement.js';
import type { ResizeRequest } from '../../input/requests/resize.js';
import type { Followers } from '../../threads/followers.js';
import { maskOfGrant } from '../../threads/mask-wish.js';
import { AdmissionError } from '../admission-error.js';
import { withMask } from '../admit.js';
import { changesUnderWay } from '../changes-under-way.js';
import type { Host } from '../host.js';
import { type EnforcedCommit, reclaim, transact } from '../transact.js';
import { heldGrant } from './held-grant.js';

/** A grant that is resized, and how. */
export interface Resizing<T> {
  readonly host: Host;
  readonly grant: PodAssignment;
  readonly request: ResizeRequest;
  /** For parts of the placement that are not on record. */
  readonly defaults: Placement;
  /** The threads of this process on the grant. */
  readonly followers: Followers<T>;
}

/**
 * Announces the CPUs that the grant will have, waits for `noticeMs`, lets threads leave lost CPUs,
 * commits, and lets threads use new ones. Meanwhile the grant has both its present and the
 * announced CPUs. A rejected resize changes nothing.
 * @throws a rejection as for an admission, ERR_INVALID_ARGUMENT for a pod of several containers,
 *   ERR_GRANT_BUSY, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors, what `followers`
 *   throws
 */
export async function resize<T>(
  resizing: Resizing<T>,
): Promise<{ readonly pod: PodAssignment; readonly followed: T | undefined }> {
  const { host, grant, request } = resizing;
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
  const underWay = host.ledger.registry.of(changesUnderWay);
  if (underWay.has(uid)) throw busy(uid);
  const endChange = underWay.begin(uid);
  // The announcement is void without the lock of this environment: a use of the state keeps it.
  const endUse = host.ledger.use();
  let isAnnounced = false;
  try {
    for (;;) {
      const announced = await announce(resizing);
      isAnnounced = announced.upcoming !== null;
      if (!isAnnounced) return { pod: announced, followed: undefined };
      await delay(request.noticeMs, undefined, { signal: request.signal }).catch(() => {});
      const result = await transact(host, undefined, (state, commit) => carryOut(resizing, state, commit));
      isAnnounced = false;
      if (result) return result;
    }
  } finally {
    endChange();
    // Any transaction of this process calls off changes that it announced and gave up, so that
    // there is no need to wait for this one.
    if (isAnnounced) reclaim(host).catch(() => {});
    endUse();
  }
}

/**
 * Records the CPUs that the grant will have. If no CPU changes, there is nothing to prepare for,
 * and the resize is done.
 */
function announce(resizing: Resizing<unknown>): Promise<PodAssignment> {
  const { host, request } = resizing;
  return transact(host, request.signal, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = currentGrant(resizing, state);
    const resized = decideResize(resizing, state, { ...pod, upcoming: null });
    const [before] = pod.containers;
    const { name, cpus, held } = resized.pod.containers[0]!;
    if (cpus.equals(before!.cpus) && held.equals(before!.held)) return record(resized, commit);
    const { uuid } = host.ledger.owners.recordFor('process');
    const announced = { ...pod, upcoming: { container: name, cpus, held, by: uuid } };
    return record({ pod: announced, next: replacePod(state, announced) }, commit);
  });
}

async function record({ pod, next }: Resized, commit: EnforcedCommit): Promise<PodAssignment> {
  await commit(next, true);
  return pod;
}

/** Resolves with undefined if the announcement is gone, because an older state came back. */
async function carryOut<T>(
  resizing: Resizing<T>,
  state: Assignments,
  commit: EnforcedCommit,
): Promise<{ readonly pod: PodAssignment; readonly followed: T } | undefined> {
  const { request, followers } = resizing;
  const pod = currentGrant(resizing, state);
  if (pod.upcoming === null) return undefined;
  const cpus = runningCpus(pod);
  let resized: Resized;
  let followed: T | undefined;
  try {
    request.signal?.throwIfAborted();
    // This decides on the announced CPUs, but memory may have become scarce since.
    resized = decideResize(resizing, state, pod);
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
function currentGrant({ host, grant }: Resizing<unknown>, state: Assignments): PodAssignment {
  const pod = heldGrant(host, state, grant);
  // What a move has left behind is given back by the next round of reclaiming.
  if (pod.former || (pod.upcoming && !host.ledger.owners.isOwnProcess(pod.upcoming.by))) throw busy(pod.uid);
  return pod;
}

function busy(uid: string): NumalignError {
  const message = `grant ${uid} is being resized already: wait until that is done`;
  return new NumalignError('ERR_GRANT_BUSY', message, { value: uid });
}

/** @throws {@link AdmissionError} */
function decideResize(
  { host, request, defaults }: Resizing<unknown>,
  state: Assignments,
  pod: PodAssignment,
): Resized {
  const { topology, resources } = host;
  const present = cpusNow(topology, state.pods);
  const within = defaults.ignoresMask ? undefined : maskOfGrant(pod, topology, state, present);
  const question = resizeQuestion({ topology, present, resources, state, within }, pod, request, defaults);
  const decision = decide(question);
  if (!decision.admitted) throw new AdmissionError(withMask(decision, within));
  return resizedPod(question, decision);
}
