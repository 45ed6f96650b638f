// Moves a grant that consents to other CPUs and memory, to make room for a request. The move is
// announced on record. The owner carries it out, or this process does if no process owns the grant.
// A placeholder keeps what the grant leaves for the request.
import { type Assignments, findPod } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { type Booked, isMoving, type MovingPod } from '../account/pod-holdings.js';
import { changesUnderWay } from '../admission/changes-under-way.js';
import { publishError } from '../admission/diagnostics.js';
import { findGrant, unknownGrant } from '../admission/grants/held-grant.js';
import type { Host } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import { moveTime, transact } from '../admission/transact.js';
import { anySignal } from '../base/notices/any-signal.js';
import { retry } from '../base/notices/backoff.js';
import {
  callOffMove,
  isAt,
  isAwaited,
  withoutAim,
  withoutPlaceholder,
} from '../decision/changes/move-steps.js';
import { until } from '../state/until.js';
import { noticeMsOf, notMoved } from './answer.js';
import { busyMove, withAnnouncement } from './move-target.js';
import { moverOf } from './mover.js';

/** The request that gets the room. */
export interface MoveRequest {
  /** The uid of the request. Its placeholder has this uid until the request is admitted. */
  readonly for: string;
  /** The uid of kept room. The grant takes what it needs; the rest becomes free at once. */
  readonly room?: string | undefined;
  /** Ends the waiting, and calls the move off if it has not begun. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Moves a grant, and returns the grant on record. If it fails, the grant has not moved, and no room
 * is kept beyond what was kept before. `after`: the new place; only its CPUs and memory count.
 * @throws ERR_UNKNOWN_GRANT; ERR_NOT_MOVABLE without consent, or beyond its terms; ERR_GRANT_BUSY
 *   while it is resized, moved or handed over; ERR_INVALID_ARGUMENT for a target with other
 *   amounts; ERR_POD_CONFLICT if the uid of the request is on record; ERR_NOT_MOVED, with a
 *   `reason`: there is no room (`no-room`), its owner refuses (`refused`, with the `cause`'s code)
 *   or does not answer within its notice (`no-answer`), it has ended (`ended`), or the move was
 *   called off (`called-off`); the signal's reason; the ledger's errors
 */
export async function moveGrant(
  host: Host,
  uid: string,
  after: Booked,
  request: MoveRequest,
): Promise<PodAssignment> {
  const { ledger } = host;
  const underWay = ledger.registry.of(changesUnderWay);
  if (underWay.has(uid)) throw busyMove(uid);
  const endChange = underWay.begin(uid);
  const end = ledger.use();
  let announced: MovingPod | undefined;
  try {
    announced = await announce(host, uid, after, request);
    const { owner } = announced;
    const isConductedHere = owner.kind !== 'process' || ledger.owners.isOwn(owner);
    const conducted = isConductedHere ? moverOf(ledger).conduct(host, announced) : undefined;
    if (conducted) await unlessAborted(conducted, request.signal);
    // If `outcome` calls the move off, this waits until the move is no longer conducted here.
    const moved = await outcome(host, announced, request.signal).finally(() => conducted);
    announced = undefined;
    return moved;
  } finally {
    endChange();
    if (announced) await callOff(host, request.for).catch(() => {});
    end();
  }
}

/** Waits until the move is conducted, or the signal aborts. */
async function unlessAborted(conducted: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return conducted;
  let abort = () => {};
  const aborted = new Promise<void>((resolve) => (abort = resolve));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort);
  await Promise.race([conducted, aborted]);
  signal.removeEventListener('abort', abort);
}

// Every transaction of this process calls off its announcements that it no longer follows.
function callOff(host: Host, request: string): Promise<void> {
  return transact(host, undefined, async (state, commit, recorded) => {
    const next = withoutAim(state, request);
    if (next !== recorded) await commit(next, true);
  });
}

function announce(
  host: Host,
  uid: string,
  after: Booked,
  { for: request, room, signal }: MoveRequest,
): Promise<MovingPod> {
  return transact(host, signal, async (before, commit) => {
    if (commit.refusal) throw commit.refusal;
    const state = room === undefined ? before : withoutPlaceholder(before, room);
    const pod = findPod(state, uid);
    if (!pod) throw unknownGrant(uid, state, host.ledger.path);
    const now = new Date();
    const { next } = await commit(
      withAnnouncement(host, state, pod, {
        target: after,
        request,
        owner: host.ledger.owners.recordFor('process'),
        ...moveTime(now),
        deadline: new Date(now.getTime() + noticeMsOf(pod)).toISOString(),
      }),
    );
    return findPod(next, uid) as MovingPod;
  });
}

/**
 * Waits for the owner, at most for its notice; once the move has begun, until it is done. From then
 * on an abort only ends the waiting.
 */
async function outcome(
  host: Host,
  announced: MovingPod,
  signal: AbortSignal | undefined,
): Promise<PodAssignment> {
  const { ledger } = host;
  const look = () => movedPod(recordedState(host), announced);
  const notice = AbortSignal.timeout(noticeMsOf(announced));
  try {
    return await until(ledger, signal ? anySignal(signal, notice) : notice, look);
  } catch (error) {
    if (!notice.aborted && !signal?.aborted) throw error;
    const hasBegun = await transact(host, undefined, async (state, commit) => {
      const pod = findGrant(state, announced);
      const isStill = pod && isMoving(pod) && !pod.former;
      if (isStill) await commit(callOffMove(state, pod), true);
      return !isStill;
    });
    if (hasBegun) return until(ledger, signal, look);
    signal?.throwIfAborted();
    throw notMoved(announced.uid, 'no-answer', 'its owner has not answered in time');
  }
}

// The grant once it has moved; undefined while that is open. Throws if it stays.
function movedPod(state: Assignments, announced: MovingPod): PodAssignment | undefined {
  const { uid, upcoming } = announced;
  const pod = findGrant(state, announced);
  if (!pod) throw notMoved(uid, 'ended', 'it has ended');
  if (isMoving(pod)) {
    const { refusal } = pod.upcoming.move;
    if (refusal !== null) throw notMoved(uid, 'refused', `its owner answers ${refusal}`, { code: refusal });
    return undefined;
  }
  if (isAt(pod, upcoming.move.target!)) return pod;
  throw notMoved(uid, 'called-off', 'the move was called off');
}

/** Frees the room of a request. Resolves to false if a grant is still moving for the request. */
export function releaseRoom(host: Host, request: string): Promise<boolean> {
  return transact(host, undefined, async (state, commit, recorded) => {
    const isKept = isAwaited(state, request);
    const next = isKept ? state : withoutPlaceholder(state, request);
    if (next !== recorded) await commit(next, true);
    return !isKept;
  });
}

/**
 * Gives the room of a request back, if there is any. If that fails, or a grant is still moving for
 * the request, tries again later. The room belongs to this process, so it becomes free when the
 * process ends.
 */
export function giveBackRoom(host: Host, request: string): Promise<void> {
  const release = async () => {
    const state = recordedState(host);
    return withoutPlaceholder(state, request) === state || releaseRoom(host, request);
  };
  return retry(release, { onError: (error) => publishError(host, 'apply', error) });
}
