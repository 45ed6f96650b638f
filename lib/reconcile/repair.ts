// Repair: makes the machine agree with the record, under the lock. If that fails, it makes the
// record agree with the machine.
import type { Assignments } from '../account/assignments.js';
import { BY_MASKS, weaker } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import type { Host } from '../admission/host.js';
import { type EnforcedCommit, transact } from '../admission/transact.js';
import { NumalignError } from '../base/errors.js';
import { countChanges } from '../cgroups/files/cgroup-files.js';
import type { Comparison, Drift, DriftKind, RepairableDrift } from '../enforcement/drift.js';
import { isPartitioned } from '../enforcement/layout/layout.js';
import { refusalName, withMemoryRefusals } from '../enforcement/memory-binding.js';
import { quietKey } from '../quiet/quieter.js';
import { raiseLevels, withLevels } from './fallen-levels.js';
import type { Fights } from './fights.js';

// A repair may reveal more differences, which are repaired in the same round. What it mends along
// the way is not a separate drift.
const PASSES = 5;
// In this order, after all other kinds: a thread needs its group first.
const REPAIRED_LAST: readonly DriftKind[] = ['thread', 'member', 'leftover'];
// Whose failures may let others run on granted CPUs, or keep a grant off its own.
const LOWERING: readonly DriftKind[] = ['partition', 'cgroup', 'pool', 'member'];

/** The result of a repair. */
export interface Repair {
  /** The differences found before. */
  readonly different: readonly RepairableDrift[];
  readonly drifts: readonly Drift[];
  readonly writes: number;
  /** Something else had to be done first: the next round compares. */
  readonly isPostponed?: boolean;
}

interface RepairAttempt {
  readonly drift: RepairableDrift;
  readonly error: NumalignError | undefined;
  readonly isLost: boolean;
}

/**
 * `compare`: compares a state with the machine now. @throws ERR_LOCK_TIMEOUT, ERR_STATE_*,
 * ERR_CGROUP
 */
export function repair(
  host: Host,
  fights: Fights,
  compare: (state: Assignments) => Promise<Comparison>,
): Promise<Repair> {
  return transact(host, undefined, async (state, commit, stateOnRecord) => {
    if (commit.refusal) return { different: [], drifts: [], writes: 0 };
    // First, the grants of dead owners are given back. The next round finds other differences.
    if (state !== stateOnRecord) {
      await commit(state, true);
      return { different: [], drifts: [], writes: 1, isPostponed: true };
    }
    const before = countChanges();
    const { different, attempts, masks } = await attemptAll(
      fights,
      async () => (await compare(state)).drifts,
    );
    if (attempts.length === 0) return { different, drifts: [], writes: 0 };
    const quietState = await repairQuiet(state, fights, attempts, commit);
    const raisable = attempts.filter(({ drift, isLost }) => drift.kind === 'level' && !isLost);
    const uids = new Set(raisable.map(({ drift }) => drift.uid));
    const raised = await raiseLevels(host, quietState, uids, commit);
    const remaining = new Set((await compare(raised)).drifts.map(({ key }) => key));
    const drifts = attempts.map((attempt) => driftOf(attempt, remaining));
    const lostKinds = attempts.filter(({ drift }) => remaining.has(drift.key)).map(({ drift }) => drift.kind);
    const refreshed = await recordRefusals(raised, attempts, remaining, commit);
    const lowered = await lower(host, refreshed, commit, lostKinds);
    const writes =
      countChanges() - before + masks + (refreshed === state ? 0 : 1) + (lowered.length > 0 ? 1 : 0);
    return { different, drifts: [...drifts, ...lowered], writes };
  });
}

// Repairs all kernel settings at once: the record comes before the writes.
async function repairQuiet(
  state: Assignments,
  fights: Fights,
  attempts: readonly RepairAttempt[],
  commit: EnforcedCommit,
): Promise<Assignments> {
  if (!attempts.some(({ drift, isLost }) => drift.kind === 'quiet' && !isLost)) return state;
  const isGivenUp = (path: string) => fights.isContested(quietKey(path));
  const { next } = await commit(state, false, { quietReview: { isGivenUp } });
  return next;
}

// Attempts each repair once. `masks`: the number of thread masks that were changed.
async function attemptAll(fights: Fights, find: () => Promise<readonly RepairableDrift[]>) {
  const attempts = new Map<string, RepairAttempt>();
  let masks = 0;
  let different: readonly RepairableDrift[] = [];
  for (let pass = 0; pass <= PASSES; pass++) {
    const found = await find();
    if (pass === 0) different = found;
    const todo = found.filter(({ key }) => !attempts.has(key) && !fights.isContested(key));
    if (todo.length === 0 || pass === PASSES) break;
    const first = Math.min(...todo.map(({ kind }) => REPAIRED_LAST.indexOf(kind)));
    for (const each of todo.filter(({ kind }) => REPAIRED_LAST.indexOf(kind) === first)) {
      const isLost = fights.meet(each.key) === 'lost';
      let error: NumalignError | undefined;
      try {
        if (!isLost) masks += each.repair();
      } catch (failure) {
        if (!(failure instanceof NumalignError)) throw failure;
        error = failure;
      }
      attempts.set(each.key, { drift: each, error, isLost });
    }
  }
  return { different, attempts: [...attempts.values()], masks };
}

function driftOf(
  { drift: { key, kind, uid, what }, error, isLost }: RepairAttempt,
  remaining: ReadonlySet<string>,
): Drift {
  return Object.freeze({
    kind,
    uid,
    what: error ? `${what}: ${error.message}` : what,
    repaired: !remaining.has(key),
    contested: isLost,
  });
}

// Records why the kernel refuses memory nodes, if the record does not say it yet.
async function recordRefusals(
  state: Assignments,
  attempts: readonly RepairAttempt[],
  remaining: ReadonlySet<string>,
  commit: EnforcedCommit,
): Promise<Assignments> {
  const outcomes = new Map<string, Map<string, string | null>>();
  for (const { drift, error } of attempts) {
    const { uid, container, key } = drift;
    if (uid === null || container === undefined || (remaining.has(key) && !error)) continue;
    const refusals = outcomes.get(uid) ?? new Map<string, string | null>();
    outcomes.set(uid, refusals.set(container, remaining.has(key) ? refusalName(error!) : null));
  }
  const next = withMemoryRefusals(state, outcomes);
  if (next !== state) await commit(next);
  return next;
}

// If others are not kept off as the record says, lowers the recorded level.
async function lower(
  { enforcer }: Host,
  state: Assignments,
  commit: EnforcedCommit,
  lostKinds: readonly DriftKind[],
): Promise<Drift[]> {
  if (!lostKinds.some((kind) => LOWERING.includes(kind))) return [];
  const lowered = (from: Assignments) => {
    const levelNow = enforcer.levelsNow(from);
    return withLevels(from, (pod) =>
      cpusOf(pod).isEmpty ? pod.enforcement.level : weaker(pod.enforcement.level, levelNow(pod)),
    );
  };
  let next = lowered(state);
  const hasLost = (pod: PodAssignment, i: number) => isPartitioned(pod) && !isPartitioned(next.pods[i]!);
  if (lostKinds.includes('partition') || state.pods.some(hasLost)) {
    next = withLevels(next, (pod) => (isPartitioned(pod) ? BY_MASKS : pod.enforcement.level));
    enforcer.apply(next);
    next = lowered(next);
  }
  const changes = next.pods.filter((pod, i) => pod.enforcement.level !== state.pods[i]!.enforcement.level);
  if (changes.length === 0) return [];
  await commit(next, true);
  return changes.map(({ uid, enforcement: { level } }) => {
    const what = `the CPUs of grant ${uid} are only kept from others at the level ${level}`;
    return Object.freeze({ kind: 'level', uid, what, repaired: false, contested: false });
  });
}
