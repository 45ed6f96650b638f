// The steps of a move, each from one state on record to the next. Pure.
import { type Assignments, findPod } from '../../account/assignments.js';
import {
  type BookedMemory,
  bookHeldMemory,
  type MemoryBlock,
  memoryBlocks,
  releaseMemory,
  type TotalOn,
} from '../../account/booked-memory.js';
import { kubeletCpus } from '../../account/kubelet-record.js';
import type { OwnerRecord, PodAssignment, RecordedMove, UpcomingCpus } from '../../account/pod-assignment.js';
import { addPod, removePods, replacePod } from '../../account/pod-changes.js';
import {
  type Booked,
  cpusOf,
  type MovingPod,
  placeCpus,
  poolOf,
  presentCpus,
  runningCpus,
  secondPlace,
} from '../../account/pod-holdings.js';
import { CpuSet } from '../../machine/cpu-set.js';
import {
  isEmpty,
  isPlaceholder,
  memoryInTheWay,
  memoryToYield,
  placeholder,
  roomCpus,
  withLessCpus,
  withLessRoom,
  withoutTarget,
  withRoom,
  withTarget,
} from './placeholder.js';

/** True if the pod grows or shrinks in place, instead of moving elsewhere. Holds in both steps. */
export const changesSize = (pod: MovingPod): boolean => secondPlace(pod).cpus.size !== runningCpus(pod).size;

/** Wall-clock times in ISO 8601 and UTC, which sort like texts. */
export interface MoveTime {
  readonly now: string;
  readonly hourAgo: string;
  readonly inAnHour: string;
}

/** A move as it is asked for. */
export interface MoveOrder extends MoveTime {
  /** What the grant will have; a result of {@link placeOf} once it is announced. */
  readonly target: Booked;
  /** The uid of the request that gets the room. If it is the grant's uid, no room is kept. */
  readonly request: string;
  /** The process that asks. */
  readonly owner: OwnerRecord;
  /** The time by which the move must begin. */
  readonly deadline: string;
}

/** The place of `after` for the pod on record, whose devices and other members stay. */
export function placeOf(pod: PodAssignment, after: Booked): Booked {
  return {
    booking: after.booking,
    containers: pod.containers.map((now, i) => {
      const { request, cpus, held, hint, memory, reusable } = after.containers[i]!;
      return {
        ...now,
        request,
        cpus,
        held,
        hint,
        memory,
        reusable: { ...reusable, devices: now.reusable.devices },
      };
    }),
  };
}

/** True if a pod is at a place. */
export const isAt = (pod: Booked, place: Booked): boolean =>
  runningCpus(pod).equals(runningCpus(place)) && blocksLeft(place, pod).length === 0;

const isSame = (a: MemoryBlock, b: MemoryBlock) =>
  a.type === b.type && a.bytes === b.bytes && String(a.nodes) === String(b.nodes);

/** The blocks of the first place that the second does not have. */
export function blocksLeft(place: Booked, other: Booked): readonly MemoryBlock[] {
  const others = memoryBlocks([other]);
  return memoryBlocks([place]).filter((block) => {
    const at = others.findIndex((each) => isSame(each, block));
    if (at >= 0) others.splice(at, 1);
    return at < 0 && block.bytes > 0;
  });
}

const released = (memory: BookedMemory, blocks: readonly MemoryBlock[]) =>
  blocks.reduce(releaseMemory, memory);

export function announceMove(
  state: Assignments,
  pod: PodAssignment,
  { target, request, owner, now, deadline }: MoveOrder,
  allocatableOn: TotalOn,
): Assignments {
  const addedMemory = blocksLeft(target, pod);
  const memory = addedMemory.reduce(
    (all: BookedMemory, block) => bookHeldMemory(all, block, allocatableOn),
    state.memory,
  );
  const upcoming: UpcomingCpus = {
    container: pod.containers[0]!.name,
    ...placeCpus(target),
    by: owner.uuid,
    move: { for: request, deadline, target, refusal: null },
  };
  const next = replacePod(state, { ...pod, upcoming }, memory);
  if (request === pod.uid) return next;
  const recorded = findPod(state, request);
  const keeper = withTarget(
    recorded ?? placeholder(request, owner, poolOf(pod), now),
    addedMemory,
    presentCpus(target),
  );
  return recorded ? replacePod(next, keeper) : addPod(next, keeper, memory);
}

/**
 * Frees kept memory of a request for a grant that moves to make more room for the same request.
 * `shortages`: the memory that the grant is missing; the room may have only a part of it.
 */
export function yieldRoom(
  state: Assignments,
  request: string,
  shortages: readonly MemoryBlock[],
): Assignments {
  return shortages.reduce(
    (before, block) => withLess(before, request, (keeper) => memoryToYield(keeper, block)),
    state,
  );
}

/**
 * Frees kept memory of a request on nodes where a grant that moves for it gets memory together with
 * other nodes.
 */
export const clearRoom = (state: Assignments, request: string, target: readonly MemoryBlock[]): Assignments =>
  withLess(state, request, (keeper) => memoryInTheWay(keeper, target));

function withLess(
  state: Assignments,
  request: string,
  partsOf: (keeper: PodAssignment) => readonly MemoryBlock[],
): Assignments {
  const keeper = keeperOf(state, { for: request });
  const parts = keeper ? partsOf(keeper) : [];
  if (parts.length === 0) return state;
  return replacePod(state, parts.reduce(withLessRoom, keeper!), released(state.memory, parts));
}

/**
 * Gives CPUs of a request's room to the shared pool, while a grant that moves for the same request
 * holds two places. No request may take the pool's last CPUs. `except`: the grant gets these.
 */
export function shareRoom(state: Assignments, request: string, except: CpuSet, count: number): Assignments {
  const keeper = count > 0 ? keeperOf(state, { for: request }) : undefined;
  if (!keeper) return state;
  const cpus = CpuSet.from(roomCpus(keeper).difference(except).toArray().slice(0, count));
  return replacePod(state, withLessCpus(keeper, cpus));
}

/** Records that the owner does not move the grant. The asking process reads the reason. */
export function refuseMove(state: Assignments, pod: MovingPod, refusal: string): Assignments {
  const { upcoming } = pod;
  return replacePod(state, { ...pod, upcoming: { ...upcoming, move: { ...upcoming.move, refusal } } });
}

/** Begins an announced move. `by`: the process that moves the grant. */
export function beginMove(state: Assignments, pod: MovingPod, by: string): Assignments {
  const { move } = pod.upcoming;
  const upcoming = { ...pod.upcoming, by, move: { ...move, target: null } };
  const keeper = keeperOf(state, move);
  const next = replacePod(state, { ...pod, ...move.target, upcoming, former: placeCpus(pod) });
  return keeper ? replacePod(next, withTarget(keeper, blocksLeft(pod, move.target!))) : next;
}

/** Undoes a move that was begun but failed. `before`: the pod before it began. */
export function undoMove(state: Assignments, before: MovingPod, refusal: string): Assignments {
  const { move } = before.upcoming;
  const next = refuseMove(replacePod(state, before), before, refusal);
  const keeper = keeperOf(state, move);
  return keeper ? replacePod(next, withTarget(keeper, blocksLeft(move.target!, before))) : next;
}

/** Finishes a move. Drops the times of moves that were more than an hour ago. */
export function finishMove(state: Assignments, pod: MovingPod, time: MoveTime): Assignments {
  const { move } = pod.upcoming;
  const moves = changesSize(pod) ? {} : { moves: [...recentMoves(pod, time), time.now] };
  const next = replacePod(state, { ...pod, upcoming: null, former: undefined, ...moves });
  const keeper = keeperOf(state, move);
  const left = cpusOf(pod).difference(presentCpus(pod)).difference(kubeletCpus(state.kubelet));
  return keeper ? replacePod(next, withRoom(keeper, left)) : next;
}

/** Ends a move before it has begun. The grant stays. */
export function callOffMove(state: Assignments, pod: MovingPod): Assignments {
  const { move } = pod.upcoming;
  return withoutAim(replacePod(state, { ...pod, upcoming: null }), move.for);
}

/** True if a grant is about to make room for a request. */
export const isAwaited = ({ pods }: Assignments, request: string): boolean =>
  pods.some(({ upcoming }) => upcoming?.move?.for === request);

/**
 * Frees the memory that a request's placeholder keeps for the target of a move, once no grant moves
 * for the request any more: it has ended, or stays.
 */
export function withoutAim(state: Assignments, request: string): Assignments {
  const keeper = keeperOf(state, { for: request });
  if (!keeper || isAwaited(state, request)) return state;
  const left = withoutTarget(keeper);
  if (isEmpty(left)) return removePods(state, new Set([request]));
  const dropped = blocksLeft(keeper, left);
  return dropped.length === 0 ? state : replacePod(state, left, released(state.memory, dropped));
}

const keeperOf = (state: Assignments, move: Pick<RecordedMove, 'for'>): PodAssignment | undefined => {
  const pod = findPod(state, move.for);
  return pod && isPlaceholder(pod) ? pod : undefined;
};

/** The times of moves in the last hour. A later time is of before the clock was set back. */
export const recentMoves = (
  { moves = [] }: PodAssignment,
  { hourAgo, inAnHour }: MoveTime,
): readonly string[] => moves.filter((at) => at > hourAgo && at < inAnHour);

/** Frees everything that is kept for a request. */
export function withoutPlaceholder(state: Assignments, request: string): Assignments {
  const pod = findPod(state, request);
  return pod && isPlaceholder(pod) ? removePods(state, new Set([request])) : state;
}
