// Transact: one step on the state that all processes share. Its commit has the kernel keep others
// off granted CPUs.
import type { Assignments } from '../account/assignments.js';
import { withIdentities } from '../account/cpu-identities.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementRequest } from '../account/levels.js';
import { mortalOwners } from '../account/owners-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods, replacePod } from '../account/pod-changes.js';
import {
  allCpus,
  isMoving,
  type MovingPod,
  memoryNodesAt,
  memoryOf,
  nodesOf,
} from '../account/pod-holdings.js';
import { podsThat } from '../account/pod-list-changes.js';
import { sharedPool } from '../account/pools.js';
import type { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { isoTime } from '../base/text/iso-time.js';
import { callOffMove, finishMove, type MoveTime } from '../decision/changes/move-steps.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import type { Machine } from '../enforcement/enforcer.js';
import type { UnpinnedThread } from '../enforcement/members/confinement.js';
import { recall, tenantPids } from '../enforcement/relocation.js';
import type { QuietReview, QuietStep } from '../quiet/quieter.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import type { Commit } from '../state/store.js';
import { migrate } from '../threads/memory.js';
import { changesUnderWay } from './changes-under-way.js';
import { publish, publishError } from './diagnostics.js';
import type { Host } from './host.js';
import { assignmentsOf } from './on-record.js';

/** What was committed, and why new grants are below the enforcement level that they aim at. */
export interface Enforced {
  readonly next: Assignments;
  readonly shortfalls: readonly string[];
}

export interface CommitOptions {
  /** The enforcement that new grants aim at. */
  readonly request?: EnforcementRequest;
  /** Threads of this process whose masks the caller changed for this commit. */
  readonly unpinned?: readonly UnpinnedThread[];
  /** Looks at all settings of quiet grants, even if the record has not changed. */
  readonly quietReview?: QuietReview;
}

/**
 * A commit that first has the kernel keep others off what it grants.
 * @throws as {@link Enforcer.clear} and {@link Commit}
 */
export interface EnforcedCommit {
  (next: Assignments, isLast?: boolean, options?: CommitOptions): Promise<Enforced>;
  readonly refusal?: NumalignError | undefined;
}

/**
 * The number of owner cgroups that a step checks if it need not know all that have ended. A check
 * takes longer than a decision. If there are more, successive steps check them in turn.
 */
export const FEW_CGROUPS = 16;

/**
 * Runs one step on the state that all processes share. `state` lacks the grants of dead owners, as
 * far as it checks them (`mostCgroups`; by default all); `recorded` still has them. There always is
 * a state: the first opener writes one.
 */
export async function transact<T>(
  host: Host,
  signal: AbortSignal | undefined,
  step: (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => Promise<T>,
  mostCgroups?: number,
): Promise<T> {
  const { ledger, topology, providers, lockTimeoutMs } = host;
  let mustReopen = false;
  const decide = (checkpoint: Checkpoint | undefined, commit: Commit) => {
    const recorded = assignmentsOf(host, checkpoint);
    let before = recorded;
    const write: EnforcedCommit = Object.assign(
      async (next: Assignments, isLast = false, options?: CommitOptions) => {
        const reopenLater = () => (mustReopen = true);
        const change = { before, wanted: next, commit };
        const enforced = await commitEnforced(host, change, { isLast, reopenLater, ...options });
        before = enforced.next;
        return enforced;
      },
      { refusal: commit.refusal },
    );
    // Without a writable state it is unknown where orphaned threads may go.
    const state = commit.refusal ? recorded : withoutDead(host, recorded, mostCgroups);
    providers.releaseAllBut(state.pods);
    return step(state, write, recorded);
  };
  try {
    return await ledger.transact({ signal, lockTimeoutMs, totalOn: totalsOf(topology) }, decide);
  } finally {
    if (mustReopen) await reopen(host);
  }
}

// Opens released CPUs to others, by the present record. This is a step of its own: the one before
// gave up the lock at its commit, so that a busy process does not block others.
async function reopen(host: Host): Promise<void> {
  const { ledger, topology, enforcer, lockTimeoutMs } = host;
  try {
    await ledger.transact({ lockTimeoutMs, totalOn: totalsOf(topology) }, async (checkpoint) => {
      if (checkpoint && !checkpoint.refusal) enforcer.apply(checkpoint.assignments, [], true);
    });
  } catch (error) {
    // The change is committed, and an error would say the opposite. The next change opens what is
    // not open yet.
    publishError(host, 'apply', error);
  }
}

/** What changes, and what writes it. */
export interface WantedChange {
  readonly before: Assignments;
  readonly wanted: Assignments;
  readonly commit: Commit;
}

interface FinalCommit {
  readonly isLast?: boolean;
  /** Called if released CPUs must be opened to others after the lock. */
  readonly reopenLater?: () => void;
}

/**
 * Has the kernel clear the CPUs that the next state grants, commits it, and opens the CPUs that it
 * releases. Kernel work leaves the CPUs of quiet grants. REQUIRES: the state's lock.
 */
export async function commitEnforced(
  host: Host,
  change: WantedChange,
  options: CommitOptions & FinalCommit = {},
): Promise<Enforced> {
  const { before, wanted, commit } = change;
  const step = host.quieter.follow(before, wanted, (state) => commit(state), options.quietReview);
  return step ? commitQuiet(host, change, await step, options) : commitCleared(host, change, options);
}

// Holds the lock until the kernel has what is on record, and the record what the kernel refused.
async function commitQuiet(
  host: Host,
  change: WantedChange,
  { next, foreign, write, undo }: QuietStep,
  options: CommitOptions,
): Promise<Enforced> {
  let enforced: Enforced;
  try {
    enforced = await commitCleared(host, { ...change, wanted: next }, { ...options, isLast: false });
  } catch (error) {
    await undo();
    throw error;
  }
  for (const what of foreign)
    publish('drift', host, () => ({ kind: 'quiet', uid: null, what, repaired: false }));
  const after = await write(enforced.next);
  if (after === enforced.next) return enforced;
  try {
    await change.commit(withIdentities(after, change.before, host.topology));
    return { ...enforced, next: after };
  } catch (error) {
    // The record then lacks facts about the kernel, but has no wrong ones.
    publishError(host, 'apply', error);
    return enforced;
  }
}

async function commitCleared(
  host: Host,
  { before, wanted, commit }: WantedChange,
  {
    isLast = false,
    reopenLater,
    request = host.enforcement,
    unpinned = [],
  }: CommitOptions & FinalCommit = {},
): Promise<Enforced> {
  const { enforcer, topology } = host;
  const clearing = enforcer.clear(before, wanted, request, unpinned);
  const { next, shortfalls, settle, undo } = clearing instanceof Promise ? await clearing : clearing;
  try {
    await commit(
      withIdentities(next, before, topology),
      isLast && (settle === undefined || reopenLater !== undefined),
    );
  } catch (error) {
    undo();
    throw error;
  }
  if (isLast && reopenLater) {
    if (settle) reopenLater();
    return { next, shortfalls };
  }
  try {
    settle?.();
  } catch (error) {
    // The change is committed, and an error would say the opposite. The next change opens what is
    // not open yet.
    publishError(host, 'apply', error);
  }
  return { next, shortfalls };
}

/** Ends the grants of dead owners, and commits that. */
export function reclaim(host: Host): Promise<void> {
  const end = async (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => {
    if (state !== recorded) await commit(state, true);
  };
  return transact(host, undefined, end, FEW_CGROUPS);
}

/**
 * The state without the grants of dead owners and without changes that no process carries out any
 * more. Threads that ended Workers left on the CPUs of their grants move to the shared pool first.
 */
export function withoutDead(
  { ledger, topology, enforcer }: Host,
  state: Assignments,
  mostCgroups?: number,
): Assignments {
  const { owners, registry } = ledger;
  for (const { uid, owner } of owners.orphans(state.pods)) {
    native.undoPin(uid, sharedPool(state, cpusNow(topology)).words);
    native.closeOrphanedOwner(owner.uuid);
  }
  const left = removePods(state, new Set(owners.deadPods(state.pods, mostCgroups).map((pod) => pod.uid)));
  const abandoned = podsToChange(left.pods).filter(isAbandoned);
  for (const pod of abandoned) {
    if (!isMoving(pod)) continue;
    recall({ topology, enforcer }, state, pod);
    recallPages({ topology, enforcer }, state, pod);
  }
  return abandoned.reduce(callOff, left);

  // The process that announced the change is dead, or has failed.
  function isAbandoned({ uid, upcoming }: PodAssignment): boolean {
    const { by } = upcoming!;
    return !owners.isProcessAlive(by) || (owners.isOwnProcess(by) && !registry.of(changesUnderWay).has(uid));
  }
}

/**
 * {@link withoutDead} with all owners checked, for a step whose `state` may have skipped some;
 * undefined if that changes nothing.
 */
export function withoutAnyDead(
  host: Host,
  state: Assignments,
  recorded: Assignments,
): Assignments | undefined {
  const cgroups = mortalOwners(recorded.pods).filter(({ kind }) => kind === 'cgroup');
  if (cgroups.length <= FEW_CGROUPS) return undefined;
  const left = withoutDead(host, recorded);
  if (left.pods.length === state.pods.length) return undefined;
  host.providers.releaseAllBut(left.pods);
  return left;
}

const HOUR_MS = 3_600_000;

/** The present time, as moves take it. */
export function moveTime(now = new Date()): MoveTime {
  const after = (ms: number) => isoTime(new Date(now.getTime() + ms));
  return { now: after(0), hourAgo: after(-HOUR_MS), inAnHour: after(HOUR_MS) };
}

// Moves the pages that an interrupted move left behind. Otherwise they would be on nodes that soon
// belong to another grant.
function recallPages({ topology, enforcer }: Machine, { pods }: Assignments, pod: MovingPod): void {
  const { upcoming, former } = pod;
  if (topology.isSimulated || !former) return;
  const keeper = pods.find(({ uid }) => uid === upcoming.move.for);
  const left = topology.nodesOf(allCpus(former)).union(nodesOf(keeper ? memoryOf(keeper) : []));
  const to = memoryNodesAt(topology, pod);
  // Pages that the kernel cannot move stay, though the memory is booked at the target.
  for (const pid of tenantPids({ enforcer }, pod, [])) migrate(left.difference(to), to, pid);
}

const podsToChange = podsThat(({ upcoming }) => upcoming !== null);

function callOff(state: Assignments, pod: PodAssignment): Assignments {
  if (!isMoving(pod)) return replacePod(state, { ...pod, upcoming: null });
  return pod.former ? finishMove(state, pod, moveTime()) : callOffMove(state, pod);
}
