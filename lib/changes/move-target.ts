// The target of a move, which the caller has chosen: checks that the grant may go there, and that
// there is room.
import { type Assignments, findPod } from '../account/assignments.js';
import { type MemoryBlock, memoryBlocks } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import { mixedOfPods } from '../account/cpus-of-pods.js';
import { bookingFlaw } from '../account/memory-of-pods.js';
import type { Elasticity, PodAssignment } from '../account/pod-assignment.js';
import {
  type Booked,
  isSettled,
  nodesOf,
  poolOf,
  presentCpus,
  runningCpus,
} from '../account/pod-holdings.js';
import { type CpuSnapshot, freeCpus, sharedPool } from '../account/pools.js';
import type { Host } from '../admission/host.js';
import { NumalignError } from '../base/errors.js';
import {
  announceMove,
  blocksLeft,
  clearRoom,
  type MoveOrder,
  type MoveTime,
  placeOf,
  recentMoves,
  shareRoom,
  withoutPlaceholder,
  yieldRoom,
} from '../decision/changes/move-steps.js';
import { isPlaceholder } from '../decision/changes/placeholder.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import { MILLI } from '../input/values/quantity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { notMoved } from './answer.js';

/**
 * The state with the move announced.
 * @throws ERR_NOT_MOVABLE without consent, or beyond it; ERR_GRANT_BUSY; ERR_INVALID_ARGUMENT if
 *   the target has other amounts than the grant; ERR_NOT_MOVED if there is no room
 */
export function withAnnouncement(
  { topology, ledger }: Host,
  state: Assignments,
  pod: PodAssignment,
  order: MoveOrder,
): Assignments {
  const { target: after, request } = order;
  if (!isSettled(pod)) throw busyMove(pod.uid);
  const isResize = pod.elastic !== undefined && runningCpus(after).size !== runningCpus(pod).size;
  if (isResize) checkRange(pod, pod.elastic, after);
  else checkShape(pod, after);
  const target = placeOf(pod, after);
  const addedMemory = blocksLeft(target, pod);
  const addedCpus = presentCpus(target).difference(presentCpus(pod));
  if (!isResize) checkConsent(pod, order, topology.nodesOf(addedCpus).union(nodesOf(addedMemory)).toArray());
  const keeper = request === pod.uid ? undefined : findPod(state, request);
  if (keeper && !(isPlaceholder(keeper) && ledger.owners.isOwn(keeper.owner))) {
    const message = `room cannot be kept for ${request}: a pod with this uid is on record`;
    throw new NumalignError('ERR_POD_CONFLICT', message, { value: request });
  }
  const noRoom = (what: string) => notMoved(pod.uid, 'no-room', `${what} is not free`);
  const now = cpusNow(topology, state.pods);
  const free = freeCpus(withoutPlaceholder(state, request), now, poolOf(pod));
  const missing = addedCpus.difference(free);
  if (!missing.isEmpty) throw noRoom(`CPU ${missing}`);
  const cleared = clearRoom(state, request, addedMemory);
  const tables = memoryTables(cleared, topology);
  const shortages = shortagesOf(addedMemory, tables);
  const shared = shareRoom(cleared, request, addedCpus, lackOfShared(state, now, addedCpus));
  const withRoom = yieldRoom(shared, request, shortages);
  const [short] =
    withRoom === cleared ? shortages : shortagesOf(addedMemory, memoryTables(withRoom, topology));
  if (short) throw noRoom(`enough ${short.type} on NUMA nodes ${short.nodes}`);
  const allocatableOn = (node: number, type: string) =>
    tables.find((table) => table.node === node && table.type === type)?.allocatable ?? 0;
  const next = announceMove(withRoom, pod, { ...order, target }, allocatableOn);
  // Memory that is allocated together on several nodes is not allocated on one of them alone.
  if (bookingFlaw(next.memory, next.pods) !== undefined) throw noRoom('the memory of these NUMA nodes');
  if (sharedPool(next, now).isEmpty && !sharedPool(state, now).isEmpty)
    throw noRoom('a CPU for the shared pool while it moves');
  const left = freeCpus(next, now).size;
  if (left < freeCpus(state, now).size && mixedOfPods(next.pods) > left * MILLI)
    throw noRoom('the part of the shared pool that mixed grants book, while it moves,');
  return next;
}

/** How many CPUs the shared pool lacks once these are taken, for itself and for mixed grants. */
function lackOfShared(state: Assignments, now: CpuSnapshot, taken: CpuSet): number {
  const free = freeCpus(state, now);
  const left = free.difference(taken);
  if (left.size === free.size) return 0;
  const least = sharedPool(state, now).difference(taken).isEmpty ? 1 : 0;
  return Math.max(least, Math.ceil(mixedOfPods(state.pods) / MILLI) - left.size);
}

/** The blocks that do not fit into the free memory of their nodes, with the missing bytes. */
function shortagesOf(blocks: readonly MemoryBlock[], tables: readonly MemoryTable[]): MemoryBlock[] {
  return blocks.flatMap((block) => {
    const rows = tables.filter(({ node, type }) => type === block.type && block.nodes.includes(node));
    const bytes = block.bytes - rows.reduce((sum, { free }) => sum + free, 0);
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

/** The amounts of a place as text. A move must not change them. */
const amountsOf = ({ booking, containers }: Booked) =>
  JSON.stringify([
    booking?.cpus.size,
    containers.map(({ name, cpus }) => [name, cpus.size]),
    memoryBlocks([{ booking, containers }])
      .map(({ type, bytes }) => `${type} ${bytes}`)
      .sort(),
  ]);

function checkShape(pod: PodAssignment, after: Booked): void {
  const [now, then] = [amountsOf(pod), amountsOf(after)];
  if (now === then && !runningCpus(pod).isEmpty) return;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `a move cannot change the amounts of grant ${pod.uid}`, {
    value: then,
    valid: now,
  });
}

// A resize keeps the memory. It adds CPUs or removes some, but does not replace any.
function checkRange(pod: PodAssignment, { min, max }: Elasticity, after: Booked): void {
  const [now, then] = [runningCpus(pod), runningCpus(after)];
  const isPart = now.isSubsetOf(then) || then.isSubsetOf(now);
  const isSame = blocksLeft(pod, after).length + blocksLeft(after, pod).length === 0;
  if (isPart && isSame && then.size >= min && then.size <= max) return;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `grant ${pod.uid} cannot grow or shrink to CPUs ${then}`, {
    value: then.toString(),
    valid: `${min} to ${max} CPUs, with all or some of ${now}`,
  });
}

function checkConsent(pod: PodAssignment, time: MoveTime, nodes: readonly number[]): void {
  const { uid, movable } = pod;
  const no = (why: string, value: unknown, valid: string) =>
    new NumalignError('ERR_NOT_MOVABLE', `grant ${uid} may not be moved${why}`, { uid, value, valid });
  if (!movable) throw no(': it was admitted without consent', uid, 'a grant with the option movable');
  const { maxPerHour, exclude } = movable;
  const excluded = nodes.filter((node) => exclude.has(node));
  if (excluded.length > 0) throw no(` to NUMA node ${excluded}`, excluded, `any node but ${exclude}`);
  const moves = recentMoves(pod, time).length;
  if (maxPerHour !== null && moves >= maxPerHour)
    throw no(' again within the hour', moves, `at most ${maxPerHour} moves an hour`);
}
