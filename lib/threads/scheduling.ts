// The scheduling class of threads: SCHED_FIFO and nice. See sched(7), sched_setattr(2) and
// sched_getattr(2).
import { checkNames, invalidOption } from '../base/check-options.js';
import { NumalignError, textOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeScheduling } from '../base/native-threads.js';
import { affinity } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { GrantedThreads } from './granted-threads.js';

/** The options of {@link Grant.schedule}. */
export interface ScheduleOptions {
  /**
   * `fifo`: SCHED_FIFO, which runs before all ordinary threads of its CPUs for as long as it wants.
   * `other`: an ordinary thread.
   * @default `other`
   */
  policy?: 'fifo' | 'other';
  /**
   * The priority with `fifo`: 1 to 99, the greater number runs first.
   * @default required with `fifo`
   */
  priority?: number;
  /**
   * The nice value with `other`: -20 to 19, the smaller number gets more time.
   * @default 0
   */
  nice?: number;
  /**
   * Which thread: `current`, or a thread id.
   * @default `current`
   */
  threads?: 'current' | number;
}

/** How a thread is scheduled, read back from the kernel. */
export interface ThreadScheduling {
  /** Its Linux thread id, as gettid(2). */
  readonly tid: number;
  /**
   * The scheduling class, as sched(7) names it in capitals: `other` is SCHED_OTHER. `unknown`: one
   * that numalign does not know.
   */
  readonly policy: 'other' | 'fifo' | 'rr' | 'batch' | 'idle' | 'deadline' | 'unknown';
  /** The real-time priority: 1 to 99 with `fifo` and `rr`, else 0. */
  readonly priority: number;
  /**
   * The nice value, -20 to 19, the smaller number gets more time; 0 with `fifo`, `rr` and
   * `deadline`.
   */
  readonly nice: number;
  /** Whether threads and processes that it starts are ordinary ones. */
  readonly resetOnFork: boolean;
}

// Keyed by the kernel's numbers.
const POLICIES = new Map<number, ThreadScheduling['policy']>([
  [0, 'other'],
  [1, 'fifo'],
  [2, 'rr'],
  [3, 'batch'],
  [5, 'idle'],
  [6, 'deadline'],
]);
const REAL_TIME: readonly string[] = ['fifo', 'rr', 'deadline'];
const CAP_SYS_NICE = 23n;
const RT_RUNTIME = '/proc/sys/kernel/sched_rt_runtime_us';

function toScheduling(tid: number, { policy, ...rest }: NativeScheduling): ThreadScheduling {
  return { tid, policy: POLICIES.get(policy) ?? 'unknown', ...rest };
}

/**
 * Returns how a thread is scheduled, as sched_getattr(2) reports it; by default the calling one.
 * @throws ERR_SYSCALL (ESRCH: no such thread), ERR_INVALID_OPTION
 */
export function scheduling(tid: number = native.threadId()): ThreadScheduling {
  return toScheduling(tid, native.scheduling(checkThread(tid)));
}

function checkThread(tid: unknown): number {
  if (typeof tid === 'number' && Number.isInteger(tid) && tid > 0 && tid < 2 ** 31) return tid;
  return invalidOption('threads', tid, "'current' or a thread id");
}

function checkRange(name: string, value: unknown, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  return invalidOption(name, value, `a whole number from ${least} to ${most}`);
}

/** The CPUs on which real-time threads of this process may run. */
export function realTimeCpus(): CpuSet {
  let cpus = CpuSet.EMPTY;
  for (const thread of native.threads()) {
    // Empty if it has ended.
    const policy = unlessRefused(() => scheduling(thread.tid).policy, '');
    if (REAL_TIME.includes(policy)) cpus = cpus.union(new CpuSet(thread.cpus));
  }
  return cpus;
}

/** @throws ERR_SCHEDULING, ERR_SYSCALL, ERR_INVALID_OPTION */
export function schedule(
  { grant, cpus }: Pick<GrantedThreads, 'grant' | 'cpus'>,
  options: ScheduleOptions,
): ThreadScheduling {
  const {
    policy = 'other',
    priority,
    nice,
    threads = 'current',
  } = checkNames(options, ['policy', 'priority', 'nice', 'threads'], 'schedule');
  if (policy !== 'fifo' && policy !== 'other') invalidOption('policy', policy, "'fifo' or 'other'");
  const isFifo = policy === 'fifo';
  if (isFifo && nice !== undefined) invalidOption('nice', nice, "left out with policy: 'fifo'");
  if (!isFifo && priority !== undefined)
    invalidOption('priority', priority, "left out without policy: 'fifo'");
  const wantedPriority = isFifo ? checkRange('priority', priority, 1, 99) : 0;
  const wantedNice = nice === undefined ? 0 : checkRange('nice', nice, -20, 19);
  const tid = threads === 'current' ? native.threadId() : checkThread(threads);
  const mask = affinity(tid);
  if (!mask.isSubsetOf(cpus)) {
    throw refusal(`thread ${tid} runs on CPUs ${mask}, which are not all of the grant: pin it first`, {
      value: mask.toString(),
      valid: cpus.toString(),
      tid,
    });
  }
  if (isFifo) checkFifo(wantedPriority);
  else checkNice(tid, wantedNice);
  const outcome = native.schedule({ tid, priority: wantedPriority, nice: wantedNice, grant });
  if (!('starved' in outcome)) return toScheduling(tid, outcome);
  throw refusal(
    `thread ${outcome.starved} of this process could only run on CPUs of real-time threads, and a thread that waits for it (a ` +
      `garbage collection waits for V8's helpers, for example) would wait forever; give the others CPUs of their own with placeThreads()`,
    { tid: outcome.starved, cpus: new CpuSet(outcome.cpus).toString(), value: mask.toString() },
  );
}

function refusal(message: string, details: Record<string, unknown>): NumalignError {
  return new NumalignError('ERR_SCHEDULING', message, details);
}

// What is hidden in a container is undefined: the kernel decides.
const read = (path: string, pattern: RegExp): string | undefined => pattern.exec(textOf(path) ?? '')?.[1];

function hasCapability(): boolean {
  const effective = read('/proc/thread-self/status', /^CapEff:\s*([0-9a-f]+)$/m);
  return effective === undefined || ((BigInt(`0x${effective}`) >> CAP_SYS_NICE) & 1n) === 1n;
}

// The soft limit; Infinity if there is none, or if it is unknown.
function limitOf(name: string): number {
  const limit = read('/proc/self/limits', new RegExp(`^${name}\\s+(\\d+)`, 'm'));
  return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
}

function checkFifo(priority: number): void {
  if (read(RT_RUNTIME, /^(-?\d+)$/m) === '0') {
    throw refusal(`this machine runs no real-time threads: ${RT_RUNTIME} is 0`, {
      value: 0,
      valid: 'more than 0, or -1',
    });
  }
  const limit = limitOf('Max realtime priority');
  if (priority <= limit || hasCapability()) return;
  throw refusal(
    `priority ${priority} needs CAP_SYS_NICE, or a limit for real-time priorities (RLIMIT_RTPRIO, ulimit -r) of at least ${priority}; the limit is ${limit}`,
    { value: priority, valid: limit === 0 ? 'none' : `1 to ${limit}`, limit },
  );
}

function checkNice(tid: number, nice: number): void {
  const { nice: now, policy } = scheduling(tid);
  if (nice >= now && policy === 'other') return;
  const least = 20 - limitOf('Max nice priority');
  if (nice >= least || hasCapability()) return;
  throw refusal(
    `nice ${nice} needs CAP_SYS_NICE, or a limit (RLIMIT_NICE, ulimit -e) of ${20 - nice}; the least nice value without them is ${Math.min(least, 19)}`,
    { value: nice, valid: `${Math.min(least, now)} to 19`, limit: 20 - least },
  );
}
