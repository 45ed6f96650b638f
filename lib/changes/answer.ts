// Answer: the listeners of a grant allow a move, or refuse it.
import type { PodAssignment } from '../account/pod-assignment.js';
import { type MovingPod, memoryNodesAt, runningCpus } from '../account/pod-holdings.js';
import { isNumalignError, NumalignError } from '../base/errors.js';
import { MOVABLE } from '../input/requests/movable.js';
import type { Topology } from '../machine/topology.js';
import type { GrantEmitter, MoveEvent } from './move-event.js';

/** The time that the owner of a grant has to answer, in milliseconds. */
export const noticeMsOf = ({ movable = MOVABLE }: Pick<PodAssignment, 'movable'>): number => movable.noticeMs;

// Another request was faster, or the grant has ended.
const PASSING = ['no-room', 'called-off', 'ended'];

/** True if an ERR_NOT_MOVED says nothing about the grant's consent: it may be asked again. */
export const isPassing = (error: NumalignError): boolean => PASSING.includes(String(reasonOf(error)));

type NotMoved = NumalignError<'ERR_NOT_MOVED'>;
type NotMovedReason = NotMoved['details']['reason'];

/** Why a grant did not move; undefined for another error. */
export const reasonOf = (error: unknown): NotMovedReason | undefined =>
  isNumalignError(error, 'ERR_NOT_MOVED') ? error.details.reason : undefined;

/** ERR_NOT_MOVED: why a grant stays where it is. */
export function notMoved(uid: string, reason: NotMovedReason, why: string, cause?: unknown): NotMoved {
  return new NumalignError('ERR_NOT_MOVED', `grant ${uid} has not moved: ${why}`, {
    value: uid,
    reason,
    ...(cause !== undefined && { cause }),
  });
}

/**
 * Why an announced move is no longer on record: too late, or called off before its deadline. By the
 * wall clock: if that is set, only this word is wrong.
 */
export function offRecord({ uid, upcoming }: MovingPod): NumalignError {
  return Date.now() < Date.parse(upcoming.move.deadline)
    ? notMoved(uid, 'called-off', 'the move was called off')
    : noAnswer(uid);
}

const noAnswer = (uid: string) => notMoved(uid, 'no-answer', 'its owner has not answered in time');

const tooLate = (uid: string) =>
  new NumalignError('ERR_INVALID_ARGUMENT', `it is already decided whether grant ${uid} moves`, {
    value: uid,
    valid: 'a call of waitUntil in the listener, or while another promise is pending',
  });

/** Waits for all promises, including those that are added meanwhile. */
async function allOf(waits: readonly PromiseLike<unknown>[]): Promise<void> {
  for (let count = 0; count < waits.length; ) {
    count = waits.length;
    await Promise.all(waits);
  }
}

/**
 * Emits `move`, and waits for the promises of the listeners.
 * @throws ERR_NOT_MOVED if a listener refuses (with its error as the cause), the deadline passes,
 *   or the move is called off meanwhile
 */
export async function askListeners(
  emitter: GrantEmitter | undefined,
  topology: Topology,
  pod: MovingPod,
  signal: AbortSignal,
): Promise<void> {
  const { uid, upcoming } = pod;
  if (!emitter) return;
  const target = upcoming.move.target!;
  const waits: PromiseLike<unknown>[] = [];
  let isOpen = true;
  const waitFor = (answer: unknown) => {
    if (!isOpen) throw tooLate(uid);
    const wait = Promise.resolve(answer);
    // It may be rejected while numalign still waits for another one.
    wait.catch(() => {});
    waits.push(wait);
  };
  const cpus = runningCpus(target);
  const event: MoveEvent = {
    uid,
    before: runningCpus(pod),
    cpus,
    nodes: topology.nodesOf(cpus),
    memoryNodes: memoryNodesAt(topology, target),
    for: upcoming.move.for,
    signal,
    deadline: new Date(upcoming.move.deadline),
    waitUntil: waitFor,
  };
  Object.freeze(event);
  const refused = (cause: unknown) => notMoved(uid, 'refused', 'its owner refuses', cause);
  // An asynchronous listener answers by its promise. One that throws refuses; the others hear, too.
  for (const listener of emitter.rawListeners('move'))
    waitFor(new Promise((resolve) => resolve(listener.call(emitter, event))));
  const answers = allOf(waits).catch((error) => {
    throw refused(error);
  });
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(noAnswer(uid)), noticeMsOf(pod));
    const off = () => reject(signal.reason);
    signal.addEventListener('abort', off, { once: true });
  });
  try {
    await Promise.race([answers, limit]);
  } finally {
    isOpen = false;
    clearTimeout(timer);
  }
}
