// Answer: what the listeners of a grant say to a move.
import type { MovingPod, Place } from '../account/moves/move-steps.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { memoryOf, nodesOf, runningCpus } from '../account/pod-holdings.js';
import { NumalignError } from '../base/errors.js';
import { MOVABLE } from '../input/movable.js';
import type { Topology } from '../machine/topology.js';
import type { GrantEmitter, MoveEvent } from './move-event.js';

/** The NUMA nodes of the memory of a place: of what is booked, else of its CPUs. */
export function memoryNodesAt(topology: Topology, place: Place) {
  const booked = nodesOf(memoryOf(place));
  return booked.isEmpty ? topology.nodesOf(runningCpus(place)) : booked;
}

/** How long the owner of a grant has to answer. */
export const noticeMsOf = ({ movable = MOVABLE }: Pick<PodAssignment, 'movable'>): number => movable.noticeMs;

/** @throws ERR_NOT_MOVED, always: why a grant stays where it is */
export function notMoved(uid: string, reason: string, why: string, cause?: unknown): NumalignError {
  return new NumalignError('ERR_NOT_MOVED', `grant ${uid} has not moved: ${why}`, {
    value: uid,
    reason,
    ...(cause !== undefined && { cause }),
  });
}

const tooLate = (uid: string) =>
  new NumalignError('ERR_INVALID_ARGUMENT', `whether grant ${uid} moves is answered already`, {
    value: uid,
    valid: 'waitUntil is called by a listener, or while what it waits for is pending',
  });

/** Once all are fulfilled, those that have come meanwhile as well. */
async function allOf(waits: readonly PromiseLike<unknown>[]): Promise<void> {
  for (let count = 0; count < waits.length; ) {
    count = waits.length;
    await Promise.all(waits);
  }
}

/**
 * Tells the listeners, and waits for those that have asked for it.
 * @throws ERR_NOT_MOVED where one refuses (with its error as the cause), the deadline passes, or the
 *   move is called off meanwhile
 */
export async function askListeners(
  emitter: GrantEmitter,
  topology: Topology,
  pod: MovingPod,
  signal: AbortSignal,
): Promise<void> {
  const { uid, upcoming } = pod;
  const target = upcoming.move.target!;
  const waits: PromiseLike<unknown>[] = [];
  let isOpen = true;
  const waitFor = (answer: unknown) => {
    if (!isOpen) throw tooLate(uid);
    const wait = Promise.resolve(answer);
    // It may be rejected while nobody but us waits for another one.
    wait.catch(() => {});
    waits.push(wait);
  };
  const cpus = runningCpus(target);
  const event: MoveEvent = {
    ...{ uid, before: runningCpus(pod), cpus, nodes: topology.nodesOf(cpus) },
    ...{ memoryNodes: memoryNodesAt(topology, target), for: upcoming.move.for, signal },
    deadline: new Date(upcoming.move.deadline),
    waitUntil: waitFor,
  };
  Object.freeze(event);
  const refused = (cause: unknown) => notMoved(uid, 'refused', 'its owner refuses', cause);
  try {
    // One that is asynchronous answers once its promise is settled.
    for (const listener of emitter.rawListeners('move')) waitFor(listener.call(emitter, event));
  } catch (error) {
    isOpen = false;
    throw refused(error);
  }
  const answers = allOf(waits).catch((error) => {
    throw refused(error);
  });
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const late = () => reject(notMoved(uid, 'no-answer', 'its owner has not answered in time'));
    timer = setTimeout(late, noticeMsOf(pod));
    const off = () => reject(notMoved(uid, 'called-off', 'the move was called off'));
    signal.addEventListener('abort', off, { once: true });
  });
  try {
    await Promise.race([answers, limit]);
  } finally {
    isOpen = false;
    clearTimeout(timer);
  }
}
