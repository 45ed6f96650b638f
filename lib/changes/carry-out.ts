// Carries out a move, in two transactions. The first gives the grant its new place, and moves its
// threads before it releases the lock. Pages take longer: the second gives up the old place once
// they have moved.
import { type Assignments, findPod } from '../account/assignments.js';
import { kubeletCpus } from '../account/kubelet-record.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import {
  type Booked,
  firstNodes,
  isMoving,
  type MovingPod,
  memoryNodesAt,
  memoryOf,
  presentCpus,
  threadShares,
} from '../account/pod-holdings.js';
import { changesUnderWay } from '../admission/changes-under-way.js';
import { publishError } from '../admission/diagnostics.js';
import { groupOf } from '../admission/grants/grant-record.js';
import type { Host } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import { type EnforcedCommit, moveTime, reclaim, transact } from '../admission/transact.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { retry } from '../base/notices/backoff.js';
import { beginMove, finishMove, undoMove } from '../decision/changes/move-steps.js';
import { checkThreads, relocate, tenantPids } from '../enforcement/relocation.js';
import type { PinResult } from '../machine/affinity.js';
import { moveBuffers } from '../threads/buffers.js';
import { childrenOn } from '../threads/children.js';
import { followMemory, type MemoryMigration, migrate } from '../threads/memory.js';
import { moveThreads } from '../threads/thread-move.js';
import { notMoved, offRecord } from './answer.js';

/** A grant that has moved. */
export interface MovedGrant {
  readonly pod: PodAssignment;
  readonly threads: PinResult;
  readonly memory: MemoryMigration | null;
}

/** The error code to record for a grant that does not move. */
export const codeOf = (error: unknown): string =>
  error instanceof NumalignError ? error.code : 'ERR_NOT_MOVED';

interface Begun {
  readonly pod: MovingPod;
  readonly threads: PinResult;
}

/**
 * Carries out an announced move. If it fails, everything is back where it was.
 * REQUIRES: its id is among the grants that this environment is resizing or moving.
 * @throws ERR_NOT_MOVED if the move was called off meanwhile; any error that prevents the move
 */
export async function carryOut(host: Host, announced: MovingPod): Promise<MovedGrant> {
  const begun = await transact(host, undefined, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = announcedPod(state, announced);
    if (!pod) throw offRecord(announced);
    return begin(host, state, pod, commit);
  });
  const memory = movePages(host, begun.pod, announced);
  const pod = await finish(host, begun.pod);
  return { pod, threads: begun.threads, memory };
}

/** The pod on record; undefined if this announcement of a move no longer stands. */
export function announcedPod(state: Assignments, announced: MovingPod): MovingPod | undefined {
  const pod = findPod(state, announced.uid);
  if (pod?.admittedAt !== announced.admittedAt || !isMoving(pod)) return undefined;
  const [now, then] = [pod.upcoming, announced.upcoming];
  const isSame =
    now.by === then.by && now.move.deadline === then.move.deadline && now.move.for === then.move.for;
  return isSame && now.move.target && now.move.refusal === null ? pod : undefined;
}

async function begin(host: Host, state: Assignments, pod: MovingPod, commit: EnforcedCommit): Promise<Begun> {
  checkTarget(state, pod);
  const { uuid } = host.ledger.owners.recordFor('process');
  const { next } = await commit(beginMove(state, pod, uuid));
  const moved = findPod(next, pod.uid) as MovingPod;
  try {
    return { pod: moved, threads: leave(host, next, pod, moved) };
  } catch (error) {
    const undone = undoMove(next, pod, codeOf(error));
    // Threads that cannot come back stay: both places belong to the grant until the move has ended.
    unlessRefused(() => leave(host, undone, moved, pod));
    await commit(undone);
    if (!host.topology.isSimulated) host.enforcer.apply(undone);
    throw error;
  }
}

// The pod may have changed since the move was announced.
function checkTarget(state: Assignments, pod: MovingPod): void {
  const { uid, containers, upcoming } = pod;
  const target = upcoming.move.target!;
  const hasStarted = containers.some(({ started }, i) => started !== target.containers[i]!.started);
  if (hasStarted) {
    const message = `a container of ${uid} has started meanwhile`;
    throw new NumalignError('ERR_GRANT_BUSY', message, { value: uid });
  }
  const taken = presentCpus(target).difference(presentCpus(pod)).intersection(kubeletCpus(state.kubelet));
  if (!taken.isEmpty) throw notMoved(uid, 'no-room', `the kubelet has taken CPU ${taken}`);
}

/** Moves everything that runs on the grant from one of its places to the other. */
function leave(host: Host, state: Assignments, from: PodAssignment, to: PodAssignment): PinResult {
  const { uid, owner } = to;
  const { result, place } = moveThreads({ uid, owner: owner.uuid, from, to });
  if (host.topology.isSimulated) return result;
  const [failed] = host.enforcer.apply(state).failed;
  if (failed !== undefined)
    throw new NumalignError('ERR_ENFORCEMENT', `grant ${uid} cannot move: ${failed}`, { value: uid });
  relocate(host, to, { from: presentCpus(from), to, children: childrenOn(host.ledger, uid) });
  place();
  checkThreads(uid, to);
  return result;
}

/** Gives up the old place. If that fails, a later transaction does it. */
async function finish(host: Host, begun: MovingPod): Promise<PodAssignment> {
  try {
    return await transact(host, undefined, async (state, commit) => {
      const pod = findPod(state, begun.uid);
      const isSameMove = pod && isMoving(pod) && pod.upcoming.by === begun.upcoming.by;
      if (!isSameMove || !pod.former) return pod ?? begun;
      const next = finishMove(state, pod, moveTime());
      await commit(next, true);
      return findPod(next, pod.uid)!;
    });
  } catch (error) {
    publishError(host, 'apply', error);
    conclude(host, begun.uid);
    return begun;
  }
}

/**
 * Ends a change that this process no longer carries out: a transaction calls it off, or finishes it
 * if it has begun. It starts that transaction now, because other processes wait.
 */
export function conclude(host: Host, uid: string): void {
  host.ledger.registry.of(changesUnderWay).drop(uid);
  void retry(() => reclaim(host), { onError: (error) => publishError(host, 'apply', error) });
}

/**
 * Moves pages from the nodes of `before` to those of `pod`. Reports pages that the kernel cannot
 * move, but does not fail: the memory is booked on the new nodes already. Pages belong to a
 * process, not to a grant, so pages of this process stay on nodes of its other grants. Null if
 * there is nothing to move.
 */
export function movePages(host: Host, pod: MovingPod, before: Booked): MemoryMigration | null {
  const { topology, ledger } = host;
  const [from, to] = [memoryNodesAt(topology, before), memoryNodesAt(topology, pod)];
  if (topology.isSimulated || from.equals(to)) return null;
  const { uid } = pod;
  const booked = firstNodes(topology, memoryOf(pod));
  followMemory(uid, to, booked.isEmpty ? to : booked);
  const group = groupOf(host, pod);
  if (group?.memory.isStrict) group.memory.restrict(to);
  const refusal = moveBuffers(uid, to);
  const migrations = tenantPids(host, pod, childrenOn(ledger, uid)).map((pid) =>
    migrate(from.difference(to), to, pid),
  );
  if (threadShares(pod).some(({ part }) => native.grantThreads(uid, part).length > 0)) {
    const { pods } = recordedState(host);
    const kept = pods
      .filter((each) => each.uid !== uid && ledger.owners.isOwn(each.owner))
      .reduce((nodes, each) => nodes.union(memoryNodesAt(topology, each)), to);
    migrations.push(migrate(from.difference(kept), to));
  }
  return together(migrations, refusal);
}

// Ignores processes that have ended (ESRCH).
function together(all: readonly MemoryMigration[], refusal: string | null): MemoryMigration | null {
  const left = all.filter(({ reason }) => reason !== 'ESRCH');
  if (left.length === 0 && refusal === null) return null;
  const done = left.flatMap(({ notMoved }) => notMoved ?? []);
  return {
    notMoved: done.length === 0 ? null : done.reduce((sum, pages) => sum + pages, 0),
    reason: left.find(({ reason }) => reason !== null)?.reason ?? refusal,
  };
}
