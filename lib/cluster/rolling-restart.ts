// RollingRestart: replaces one worker after the other by a new one.
import type { Worker } from 'node:cluster';
import { checkOptions } from '../base/check-options.js';
import { obstacleOf } from '../base/refusal.js';
import { checkSignal } from '../input/requests/request.js';
import { option } from '../input/values/option-values.js';
import type { WorkerPlan } from './fork-options.js';
import type { GrantedWorker, WorkerGrant } from './granted-worker.js';
import { Slot, type SlotOwner } from './slot.js';

/** The options of {@link Cluster.restart}. */
export interface RestartOptions {
  /**
   * How long a worker may take from `disconnect()` to its end, in milliseconds; then it is killed.
   * @default 30,000
   */
  deadlineMs?: number;
  /**
   * How long a new worker may take until it serves, in milliseconds.
   * @default 30,000
   */
  startDeadlineMs?: number;
  /**
   * Ends the restart between two workers.
   * @default none
   */
  signal?: AbortSignal;
}

/** What {@link Cluster.restart} did with a worker. */
export interface Replacement {
  /** The worker that has ended. */
  readonly before: Worker;
  /** The new worker. */
  readonly worker: GrantedWorker;
  /** Whether the new worker served before the old one was told to end. */
  readonly overlapped: boolean;
  /** Whether the old worker did not end in time and was killed. */
  readonly killed: boolean;
}

type Rolling = SlotOwner & { readonly slots: Set<Slot> };

const DEADLINE_MS = 30_000;
// The longest delay of a timer.
const LONGEST_MS = 2 ** 31 - 1;

type Restart = ReturnType<typeof parseRestart>;

/** A slot and its worker, which is to be replaced. */
type Old = { readonly slot: Slot; readonly before: GrantedWorker };

/** @throws ERR_INVALID_OPTION */
export function parseRestart(options: RestartOptions) {
  const checkedOptions = checkOptions(options, ['deadlineMs', 'startDeadlineMs', 'signal'], 'restart');
  const deadline = (name: 'deadlineMs' | 'startDeadlineMs') =>
    option.whole(checkedOptions[name] ?? DEADLINE_MS, name, LONGEST_MS);
  return {
    deadlineMs: deadline('deadlineMs'),
    startDeadlineMs: deadline('startDeadlineMs'),
    signal: checkSignal(checkedOptions.signal),
  };
}

/** @throws like {@link Cluster.restart} */
export async function restartAll(owner: Rolling, request: Restart): Promise<Replacement[]> {
  const replacements: Replacement[] = [];
  for (const slot of [...owner.slots]) {
    request.signal?.throwIfAborted();
    const before = slot.worker;
    if (!before || slot.isClosed || !owner.slots.has(slot)) continue;
    const next = before.isDead() ? undefined : await slotBeside(owner, slot.plan, before);
    const old = { slot, before };
    if (next && (slot.isClosed || !owner.slots.has(slot))) next.giveBack();
    else if (next) replacements.push(...(await overlap(owner, next, old, request)));
    else replacements.push(...(await inPlace(old, request)));
  }
  return replacements;
}

// Undefined if there are no CPUs for a second worker.
async function slotBeside(
  owner: SlotOwner,
  plan: WorkerPlan,
  { grant }: GrantedWorker,
): Promise<Slot | undefined> {
  const now = { ...plan, request: { ...plan.request, wait: false } };
  // A worker with CPUs must not be replaced by one without.
  const planBeside = grant ? { ...now, isOptional: false } : now;
  let granted: WorkerGrant;
  try {
    granted = await owner.grantFor(planBeside);
  } catch (error) {
    obstacleOf(error);
    return undefined;
  }
  return new Slot(owner, plan, granted);
}

// Empty if the cluster was disconnected in the meantime.
async function overlap(
  owner: Rolling,
  next: Slot,
  { slot, before }: Old,
  { deadlineMs, startDeadlineMs }: Restart,
): Promise<Replacement[]> {
  let worker: GrantedWorker;
  // Added before it starts: the cluster may be disconnected in the meantime.
  owner.slots.add(next);
  try {
    worker = await next.start();
  } catch (error) {
    owner.forget(next);
    next.giveBack();
    throw error;
  }
  try {
    if (!(await serves(next, slot.life?.listens ?? false, startDeadlineMs))) return [];
  } catch (error) {
    await next.retire(0);
    throw error;
  }
  return [{ before, worker, overlapped: true, killed: await slot.retire(deadlineMs) }];
}

// Empty if the cluster was disconnected in the meantime.
async function inPlace(
  { slot, before }: Old,
  { deadlineMs, startDeadlineMs }: Restart,
): Promise<Replacement[]> {
  const listens = slot.life?.listens ?? false;
  const killed = await slot.restart(deadlineMs);
  if (!(await serves(slot, listens, startDeadlineMs))) return [];
  return [{ before, worker: slot.worker!, overlapped: false, killed }];
}

// False if the cluster was disconnected in the meantime. @throws ERR_WORKER_START
async function serves(slot: Slot, listens: boolean, startDeadlineMs: number): Promise<boolean> {
  try {
    await slot.life!.untilReady(listens, startDeadlineMs);
  } catch (error) {
    if (!slot.isClosed) throw error;
  }
  return !slot.isClosed;
}
