// The target of a move: whether the grant may go there, and there is room for it. Nothing is decided:
// who asks has chosen it.
import { type Assignments, findPod } from '../account/assignments.js';
import { type MemoryBlock, memoryBlocks } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import { mixedOfPods } from '../account/cpus-of-pods.js';
import { bookingFlaw } from '../account/memory-of-pods.js';
import {
  announceMove,
  blocksLeft,
  type MoveAsker,
  type MoveTime,
  movesSince,
  type Place,
  placeOf,
  withoutPlaceholder,
  yieldRoom,
} from '../account/moves/move-steps.js';
import { isPlaceholder } from '../account/moves/placeholder.js';
import type { Elasticity, PodAssignment } from '../account/pod-assignment.js';
import { nodesOf, poolOf, presentCpus, runningCpus } from '../account/pod-holdings.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import type { Site } from '../admission/site.js';
import { NumalignError } from '../base/errors.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import { MILLI } from '../input/values/quantity.js';
import { notMoved } from './answer.js';

/**
 * The state by which the move is announced.
 * @throws ERR_NOT_MOVABLE without consent, or beyond it; ERR_GRANT_BUSY; ERR_INVALID_ARGUMENT where
 *   the target is no other place for just what the grant has; ERR_NOT_MOVED where there is no room
 */
export function withAnnouncement(
  { topology, ledger }: Site,
  state: Assignments,
  pod: PodAssignment,
  after: Place,
  asker: MoveAsker,
): Assignments {
  if (pod.upcoming || pod.transfer !== null || pod.formerOwner !== null) throw busyMove(pod.uid);
  const isResize = pod.elastic !== undefined && runningCpus(after).size !== runningCpus(pod).size;
  if (isResize) checkRange(pod, pod.elastic, after);
  else checkShape(pod, after);
  const target = placeOf(pod, after);
  const more = blocksLeft(target, pod);
  const fresh = presentCpus(target).difference(presentCpus(pod));
  if (!isResize) checkConsent(pod, asker, topology.nodesOf(fresh).union(nodesOf(more)).toArray());
  const keeper = asker.request === pod.uid ? undefined : findPod(state, asker.request);
  const isTheirs = keeper && isPlaceholder(keeper) && ledger.owners.isOwn(keeper.owner);
  if (keeper && !isTheirs) {
    throw new NumalignError('ERR_POD_CONFLICT', `room cannot be kept for ${asker.request}: it is on record`, {
      value: asker.request,
    });
  }
  const taken = (what: string) => notMoved(pod.uid, 'no-room', `${what} is not free`);
  const now = cpusNow(topology, state.pods);
  const free = freeCpus(withoutPlaceholder(state, asker.request), now, poolOf(pod));
  const missing = fresh.difference(free);
  if (!missing.isEmpty) throw taken(`CPU ${missing}`);
  const tables = memoryTables(state, topology);
  const lacking = lackingOf(more, tables);
  const yielded = yieldRoom(state, asker.request, lacking);
  const [short] = yielded === state ? lacking : lackingOf(more, memoryTables(yielded, topology));
  if (short) throw taken(`so much ${short.type} of NUMA nodes ${short.nodes}`);
  const allocatableOn = (node: number, type: string) =>
    tables.find((table) => table.node === node && table.type === type)?.allocatable ?? 0;
  const next = announceMove(yielded, pod, target, asker, allocatableOn);
  // Memory that is allocated together on several nodes is not allocated on one of them alone.
  if (bookingFlaw(next.memory, next.pods) !== undefined) throw taken('the memory of these NUMA nodes');
  if (sharedPool(next, now).isEmpty && !sharedPool(state, now).isEmpty)
    throw taken('a CPU for the shared pool while it moves');
  const left = freeCpus(next, now).size;
  if (left < freeCpus(state, now).size && mixedOfPods(next.pods) > left * MILLI)
    throw taken('what is booked of the shared pool for mixed grants, while it moves,');
  return next;
}

/** What nodes do not have of the memory that is to be theirs. */
function lackingOf(blocks: readonly MemoryBlock[], tables: readonly MemoryTable[]): MemoryBlock[] {
  return blocks.flatMap((block) => {
    const own = tables.filter(({ node, type }) => type === block.type && block.nodes.includes(node));
    const bytes = block.bytes - own.reduce((sum, { free }) => sum + free, 0);
    return bytes > 0 ? [{ ...block, bytes }] : [];
  });
}

export function busyMove(uid: string): NumalignError {
  return new NumalignError(
    'ERR_GRANT_BUSY',
    `grant ${uid} is being resized, moved or handed over: wait until that is done`,
    { value: uid },
  );
}

/** What makes a place another one for the same. */
const amountsOf = ({ booking, containers }: Place) =>
  JSON.stringify([
    booking?.cpus.size,
    containers.map(({ name, cpus }) => [name, cpus.size]),
    memoryBlocks([{ booking, containers }])
      .map(({ type, bytes }) => `${type} ${bytes}`)
      .sort(),
  ]);

function checkShape(pod: PodAssignment, after: Place): void {
  const [now, then] = [amountsOf(pod), amountsOf(after)];
  if (now === then && !runningCpus(pod).isEmpty) return;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `${pod.uid} cannot become another grant by a move`, {
    value: then,
    valid: now,
  });
}

// It keeps its memory, and what it has of CPUs or a part of it.
function checkRange(pod: PodAssignment, { min, max }: Elasticity, after: Place): void {
  const [now, then] = [runningCpus(pod), runningCpus(after)];
  const isPart = now.isSubsetOf(then) || then.isSubsetOf(now);
  const isSame = blocksLeft(pod, after).length + blocksLeft(after, pod).length === 0;
  if (isPart && isSame && then.size >= min && then.size <= max) return;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `${pod.uid} cannot have the CPUs ${then} by itself`, {
    value: then.toString(),
    valid: `${min} to ${max} CPUs, with all or some of ${now}`,
  });
}

function checkConsent(pod: PodAssignment, time: MoveTime, nodes: readonly number[]): void {
  const { uid, movable } = pod;
  const no = (why: string, value: unknown, valid: string) =>
    new NumalignError('ERR_NOT_MOVABLE', `grant ${uid} may not be moved${why}`, { uid, value, valid });
  if (!movable) throw no(': it was admitted without consent to that', uid, 'a grant with the option movable');
  const { maxPerHour, exclude } = movable;
  const excluded = nodes.filter((node) => exclude.has(node));
  if (excluded.length > 0) throw no(` to NUMA node ${excluded}`, excluded, `any node but ${exclude}`);
  const moves = movesSince(pod, time).length;
  if (maxPerHour !== null && moves >= maxPerHour)
    throw no(' any more within the hour', moves, `at most ${maxPerHour} moves an hour`);
}
