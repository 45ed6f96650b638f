// Transact: one step on the state for all processes, and its commit, by which the kernel keeps
// others off what is taken.
import type { Assignments } from '../account/assignments.js';
import { withIdentities } from '../account/cpu-identities.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementRequest } from '../account/levels.js';
import {
  callOffMove,
  finishMove,
  isMoving,
  type MoveTime,
  type MovingPod,
} from '../account/moves/move-steps.js';
import { mortalOwners } from '../account/owners-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods, replacePod } from '../account/pod-changes.js';
import { memoryOf, nodesOf, runningCpus } from '../account/pod-holdings.js';
import { podsThat } from '../account/pod-list-changes.js';
import { sharedPool } from '../account/pools.js';
import type { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import type { UnpinnedThread } from '../enforcement/members/confinement.js';
import { type MoveSite, recall, tenantPids } from '../enforcement/relocation.js';
import type { QuietReview, QuietStep } from '../quiet/quieter.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import type { Commit } from '../state/store.js';
import { migrate } from '../threads/memory.js';
import { changesUnderWay } from './changes/changes-under-way.js';
import { publish, publishError } from './diagnostics.js';
import { assignmentsOf } from './on-record.js';
import type { Site } from './site.js';

/**
 * What was committed, and of new grants why they have not reached the level of enforcement that was
 * aimed at.
 */
export interface Enforced {
  readonly next: Assignments;
  readonly shortfalls: readonly string[];
}

export interface CommitOptions {
  /** Of new grants. */
  readonly request?: EnforcementRequest;
  /** Threads of this process whose masks were changed for them before. */
  readonly unpinned?: readonly UnpinnedThread[];
  /** Has all settings of quiet grants looked at. */
  readonly quietReview?: QuietReview;
}

/**
 * A commit by which the kernel keeps others off what is taken.
 * @throws as {@link Enforcer.clear} and {@link Commit}
 */
export interface EnforcedCommit {
  (next: Assignments, isLast?: boolean, options?: CommitOptions): Promise<Enforced>;
  readonly refusal?: NumalignError | undefined;
}

/**
 * To how many of the cgroups that own grants a step looks that need not know of all whether they have
 * ended. A look takes longer than a decision; of many, each has its turn.
 */
export const FEW_CGROUPS = 16;

/**
 * One step on the state for all processes: on `state`, without the grants of dead owners, as far as
 * these are looked at (`mostCgroups`; default: all); `recorded` still has them. An opener has written
 * the first state, so that there always is one.
 */
export async function transact<T>(
  site: Site,
  signal: AbortSignal | undefined,
  step: (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => Promise<T>,
  mostCgroups?: number,
): Promise<T> {
  const { ledger, topology, providers, lockTimeoutMs } = site;
  let isGivenBack = false;
  const decide = (checkpoint: Checkpoint | undefined, commit: Commit) => {
    const recorded = assignmentsOf(site, checkpoint);
    let before = recorded;
    const write: EnforcedCommit = Object.assign(
      async (next: Assignments, isLast = false, options?: CommitOptions) => {
        const later = () => (isGivenBack = true);
        const enforced = await commitEnforced(site, before, next, commit, { isLast, later, ...options });
        before = enforced.next;
        return enforced;
      },
      { refusal: commit.refusal },
    );
    // Where nothing can be written nobody can tell either where threads may go that others have
    // left behind.
    const state = commit.refusal ? recorded : withoutDead(site, recorded, mostCgroups);
    providers.releaseAllBut(state.pods);
    return step(state, write, recorded);
  };
  try {
    return await ledger.transact({ signal, lockTimeoutMs, totalOn: totalsOf(topology) }, decide);
  } finally {
    if (isGivenBack) await reopen(site);
  }
}

// What was given back, as it is on record by now. A step of its own: the lock of the one before was
// let go with its commit, whatever keeps this process busy.
async function reopen(site: Site): Promise<void> {
  const { ledger, topology, enforcer, lockTimeoutMs } = site;
  try {
    await ledger.transact({ lockTimeoutMs, totalOn: totalsOf(topology) }, async (checkpoint) => {
      if (checkpoint && !checkpoint.refusal) enforcer.apply(checkpoint.assignments, [], true);
    });
  } catch (error) {
    // It is committed, and must not be taken for undone. What is not open yet is opened by the next
    // change.
    publishError(site, 'apply', error);
  }
}

interface Last {
  readonly isLast?: boolean;
  /** Has what is given back opened once the lock was let go. */
  readonly later?: () => void;
}

/**
 * Has the kernel clear what the next state takes, commits it, and has what it gives back opened to
 * the others; and has its own work leave the CPUs of quiet grants. Under the lock, so that nobody else
 * does so meanwhile.
 */
export async function commitEnforced(
  site: Site,
  before: Assignments,
  wanted: Assignments,
  commit: Commit,
  options: CommitOptions & Last = {},
): Promise<Enforced> {
  const step = site.quieter.follow(before, wanted, (state) => commit(state), options.quietReview);
  return step
    ? commitQuiet(site, before, await step, commit, options)
    : commitCleared(site, before, wanted, commit, options);
}

// The lock is held until the kernel has what is on record, and the record what the kernel has refused.
async function commitQuiet(
  site: Site,
  before: Assignments,
  { next, foreign, write, undo }: QuietStep,
  commit: Commit,
  options: CommitOptions,
): Promise<Enforced> {
  let enforced: Enforced;
  try {
    enforced = await commitCleared(site, before, next, commit, { ...options, isLast: false });
  } catch (error) {
    await undo();
    throw error;
  }
  for (const what of foreign)
    publish('drift', site, () => ({ kind: 'quiet', uid: null, what, repaired: false }));
  const after = await write(enforced.next);
  if (after === enforced.next) return enforced;
  try {
    await commit(withIdentities(after, before, site.topology));
    return { ...enforced, next: after };
  } catch (error) {
    // What is on record says less of the kernel than is known, and nothing that is wrong.
    publishError(site, 'apply', error);
    return enforced;
  }
}

async function commitCleared(
  site: Site,
  before: Assignments,
  wanted: Assignments,
  commit: Commit,
  { isLast = false, later, request = site.enforcement, unpinned = [] }: CommitOptions & Last = {},
): Promise<Enforced> {
  const { enforcer, topology } = site;
  const clearing = enforcer.clear(before, wanted, request, unpinned);
  const { next, shortfalls, settle, undo } = clearing instanceof Promise ? await clearing : clearing;
  try {
    await commit(
      withIdentities(next, before, topology),
      isLast && (settle === undefined || later !== undefined),
    );
  } catch (error) {
    undo();
    throw error;
  }
  if (isLast && later) {
    if (settle) later();
    return { next, shortfalls };
  }
  try {
    settle?.();
  } catch (error) {
    // It is committed, and must not be taken for undone. What is not open yet is opened by the next
    // change.
    publishError(site, 'apply', error);
  }
  return { next, shortfalls };
}

/** Ends the grants of dead owners, on record too. */
export function reclaim(site: Site): Promise<void> {
  const end = async (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => {
    if (state !== recorded) await commit(state, true);
  };
  return transact(site, undefined, end, FEW_CGROUPS);
}

/**
 * The state less the grants of dead owners. Threads that ended Workers have left on their grants'
 * CPUs move to the shared pool first.
 */
export function withoutDead(
  { ledger, topology, enforcer }: Site,
  state: Assignments,
  mostCgroups?: number,
): Assignments {
  const { owners, registry } = ledger;
  for (const { uid, owner } of owners.orphans(state.pods)) {
    native.undoPin(uid, sharedPool(state, cpusNow(topology)).words);
    native.closeOrphanedOwner(owner.uuid);
  }
  const left = removePods(state, new Set(owners.deadPods(state.pods, mostCgroups).map((pod) => pod.uid)));
  const off = podsToResize(left.pods).filter(isOff);
  for (const pod of off) {
    if (!isMoving(pod)) continue;
    recall({ topology, enforcer }, state, pod);
    recallPages({ topology, enforcer }, state, pod);
  }
  return off.reduce(callOff, left);

  // Who was to do it is dead, or has failed.
  function isOff({ uid, upcoming }: PodAssignment): boolean {
    const { by } = upcoming!;
    return !owners.isProcessAlive(by) || (owners.isOwnProcess(by) && !registry.of(changesUnderWay).has(uid));
  }
}

/**
 * The same once all owners are looked at, for a step on a `state` for which they may not have been;
 * undefined where that changes nothing.
 */
export function withoutAnyDead(
  site: Site,
  state: Assignments,
  recorded: Assignments,
): Assignments | undefined {
  const cgroups = mortalOwners(recorded.pods).filter(({ kind }) => kind === 'cgroup');
  if (cgroups.length <= FEW_CGROUPS) return undefined;
  const left = withoutDead(site, recorded);
  if (left.pods.length === state.pods.length) return undefined;
  site.providers.releaseAllBut(left.pods);
  return left;
}

const HOUR_MS = 3_600_000;

/** As it is now. */
export function moveTime(now = new Date()): MoveTime {
  return { now: now.toISOString(), hourAgo: new Date(now.getTime() - HOUR_MS).toISOString() };
}

/**
 * Pages that had not followed yet of a move that had begun: nobody else is left to move them before what
 * it leaves is somebody's.
 */
function recallPages({ topology, enforcer }: MoveSite, { pods }: Assignments, pod: MovingPod): void {
  const { cpus, held, move } = pod.upcoming;
  if (topology.isSimulated || move.target) return;
  const keeper = pods.find(({ uid }) => uid === move.for);
  const left = topology.nodesOf(cpus.union(held)).union(nodesOf(keeper ? memoryOf(keeper) : []));
  const booked = nodesOf(memoryOf(pod));
  const to = booked.isEmpty ? topology.nodesOf(runningCpus(pod)) : booked;
  // What the kernel cannot move stays: the memory is booked where it goes.
  for (const pid of tenantPids({ enforcer }, pod, [])) migrate(left.difference(to), to, pid);
}

const podsToResize = podsThat(({ upcoming }) => upcoming !== null);

function callOff(state: Assignments, pod: PodAssignment): Assignments {
  if (!isMoving(pod)) return replacePod(state, { ...pod, upcoming: null });
  return pod.upcoming.move.target ? callOffMove(state, pod) : finishMove(state, pod, moveTime());
}
