// Account: what has happened on a grant's CPUs since a beginning, updated with each snapshot. Pure:
// an audit is the difference of two snapshots, plus the last known counters of threads that have
// ended in between.
import type { EnforcementLevel } from '../account/levels.js';
import { CPU_COUNTERS, THREAD_COUNTERS } from '../base/native-tables.js';
import type { CpuSet } from '../machine/cpu-set.js';
import {
  type CpuCounters,
  difference,
  sum,
  THROTTLING_COUNTERS,
  type ThreadCounters,
  type ThrottlingCounters,
  zero,
} from './counters.js';
import type { Snapshot, TaskSnapshot, ThreadSnapshot } from './snapshot.js';

/** What a thread of the grant did since the beginning, or since it came to these CPUs. */
export interface ThreadAudit extends ThreadCounters {
  /** The pid of its process, in the pid namespace of the caller. */
  readonly pid: number;
  /** Its Linux thread id, as gettid(2); the pid for the main thread. */
  readonly tid: number;
  /**
   * The role of a thread of this process. In other processes only `main` is known; all others are
   * `other`.
   */
  readonly role: ThreadSnapshot['role'];
  /** The CPUs that it may run on now. They can be outside of the grant if it is not pinned. */
  readonly cpus: CpuSet;
  /** The CPU that it runs on, or ran on last. */
  readonly processor: number;
}

/** A task of another process that was on the CPUs since the last audit. */
export interface ForeignTask {
  /** The pid of its process, in the pid namespace of the caller. */
  readonly pid: number;
  /** Its Linux thread id, as gettid(2). */
  readonly tid: number;
  /** The name of the thread, as the kernel has it in /proc/PID/task/TID/comm. */
  readonly command: string;
  /**
   * `user`: another process. `owner`: a thread of the grant's own processes that may also run
   * elsewhere. `kernel`: a kernel thread.
   */
  readonly kind: TaskSnapshot['kind'];
  /** Whether it is a kernel thread bound to its CPU, so that nothing can keep it off. */
  readonly bound: boolean;
  /**
   * Nanoseconds that it ran since the last audit, on any CPU; null if it was on other CPUs then.
   */
  readonly runTimeNs: number | null;
}

/** What happened on one CPU. */
export interface CpuAudit extends CpuCounters {
  /** Logical CPU id, as Linux numbers CPUs. */
  readonly cpu: number;
  /** Its frequency at this moment, in kHz; null without cpufreq. */
  readonly frequencyKHz: number | null;
  /** The tasks of other processes that were on it; null with `foreign: false`. */
  readonly foreign: readonly ForeignTask[] | null;
}

/** Sums over all threads and CPUs, with what CPUs did before the grant lost them. */
export interface AuditTotals extends ThreadCounters, CpuCounters {
  /**
   * How many threads ended or left these CPUs. The sums include what the last audit saw of them.
   */
  readonly endedThreads: number;
  /**
   * How often a task of another process was found that the audit before did not find there; null
   * with `foreign: false`.
   */
  readonly foreignTasks: number | null;
}

/**
 * What happened since the grant was pinned. Amounts count from `since`; null is what cannot be read
 * here.
 */
export interface GrantAudit {
  /** The uid of the grant. */
  readonly grant: string;
  /** The enforcement level of the grant. */
  readonly enforcement: EnforcementLevel;
  /** When counting began, as wall-clock time in ISO 8601. */
  readonly since: string;
  /** Milliseconds since `since`, by a clock that also counts suspended time. */
  readonly elapsedMs: number;
  /**
   * The threads of the owner and its children that are confined to the grant's CPUs; if there are
   * none, for a grant of this process, all its threads that may run there.
   */
  readonly threads: readonly ThreadAudit[];
  /** One entry for each CPU that the grant has now. */
  readonly cpus: readonly CpuAudit[];
  /**
   * Whether this process sees all others, so that `foreign` is complete. False in most containers;
   * null with `foreign: false`.
   */
  readonly seesAllTasks: boolean | null;
  /**
   * The throttling of the grant's processes, by their cgroups and those above. Null if none of them
   * counts it.
   */
  readonly throttling: ThrottlingCounters | null;
  /**
   * Pages of the grant's processes on other NUMA nodes than the grant has now; null without
   * `memory: true`.
   */
  readonly offNodePages: number | null;
  /** The size of these pages in bytes; null without `memory: true`. */
  readonly offNodeBytes: number | null;
  /** Sums of the counters of `threads` and `cpus`. */
  readonly totals: AuditTotals;
}

type RanTask = Omit<TaskSnapshot, 'runTimeNs'> & Pick<ForeignTask, 'runTimeNs'>;

interface Foreign {
  readonly bootNs: number;
  /** All tasks found, by {@link keyOf}. */
  readonly tasks: ReadonlyMap<string, TaskSnapshot>;
  /** The tasks that have run since the previous look. */
  readonly ran: readonly RanTask[];
  readonly count: number;
}

export interface Account {
  readonly since: Snapshot;
  readonly last: Snapshot;
  /** The counters at the beginning of each thread, by {@link keyOf}. */
  readonly threads: ReadonlyMap<string, ThreadCounters>;
  readonly ended: { readonly threads: number; readonly counters: ThreadCounters };
  readonly cpus: ReadonlyMap<number, CpuCounters>;
  /** What CPUs did that the grant no longer has. */
  readonly cpusBefore: CpuCounters;
  readonly throttling: ReadonlyMap<string, ThrottlingCounters>;
  /** The throttling of cgroups that no longer have a process. */
  readonly throttledBefore: ThrottlingCounters;
  /** Null if no look has covered tasks yet. */
  readonly foreign: Foreign | null;
}

// The resolution of thread start times.
const START_NS = 10_000_000;

// Thread ids are reused.
const keyOf = ({ tid, startNs }: Pick<ThreadSnapshot, 'tid' | 'startNs'>) => `${tid} ${startNs}`;

const wasBornSince = ({ startNs }: Pick<ThreadSnapshot, 'startNs'>, bootNs: number) =>
  startNs + START_NS > bootNs;

/** Begins an account with a snapshot. */
export function openAccount(snapshot: Snapshot): Account {
  const { threads, cpus, throttling, tasks } = snapshot;
  return {
    since: snapshot,
    last: snapshot,
    threads: new Map(threads.map((thread) => [keyOf(thread), thread.counters])),
    ended: { threads: 0, counters: zero(THREAD_COUNTERS) },
    cpus: new Map(cpus.map(({ cpu, counters }) => [cpu, counters])),
    cpusBefore: zero(CPU_COUNTERS),
    throttling,
    throttledBefore: zero(THROTTLING_COUNTERS),
    foreign: tasks && { bootNs: snapshot.bootNs, tasks: byKey(tasks), ran: [], count: 0 },
  };
}

const byKey = (tasks: readonly TaskSnapshot[]) => new Map(tasks.map((task) => [keyOf(task), task]));

/**
 * Continues an account with the next snapshot. What is new counts from its first sight, except that
 * a thread created in between counts from its start.
 */
export function advance(account: Account, snapshot: Snapshot): Account {
  const { since, last } = account;
  const threads = new Map(
    snapshot.threads.map((thread) => {
      const born = wasBornSince(thread, last.bootNs) ? zero(THREAD_COUNTERS) : thread.counters;
      return [keyOf(thread), account.threads.get(keyOf(thread)) ?? born];
    }),
  );
  const endedThreads = last.threads.filter((thread) => !threads.has(keyOf(thread)));
  const cpus = new Map(snapshot.cpus.map(({ cpu, counters }) => [cpu, account.cpus.get(cpu) ?? counters]));
  const lostCpus = last.cpus.filter(({ cpu }) => !cpus.has(cpu));
  const leftCgroups = [...last.throttling].filter(([file]) => !snapshot.throttling.has(file));
  return {
    since,
    last: snapshot,
    threads,
    ended: {
      threads: account.ended.threads + endedThreads.length,
      counters: sum(THREAD_COUNTERS, [
        account.ended.counters,
        ...endedThreads.map((thread) => threadCounters(account, thread)),
      ]),
    },
    cpus,
    cpusBefore: sum(CPU_COUNTERS, [
      account.cpusBefore,
      ...lostCpus.map(({ cpu, counters }) => difference(CPU_COUNTERS, counters, account.cpus.get(cpu)!)),
    ]),
    throttling: new Map(
      [...snapshot.throttling].map(([file, counters]) => [file, account.throttling.get(file) ?? counters]),
    ),
    throttledBefore: sum(THROTTLING_COUNTERS, [
      account.throttledBefore,
      ...leftCgroups.map(([file, counters]) =>
        difference(THROTTLING_COUNTERS, counters, account.throttling.get(file)!),
      ),
    ]),
    foreign:
      snapshot.tasks === null ? account.foreign : nextForeign(account, snapshot.tasks, snapshot.bootNs),
  };
}

function threadCounters(account: Account, thread: ThreadSnapshot): ThreadCounters {
  return difference(THREAD_COUNTERS, thread.counters, account.threads.get(keyOf(thread))!);
}

// A task has run on these CPUs since the last look if its run time has grown, if it is new, or if
// it is runnable now. (The kernel puts a task on a CPU only to run it there.) At the first look,
// only runnable tasks and those born since the beginning are known to have run.
function nextForeign({ since, foreign }: Account, tasks: readonly TaskSnapshot[], bootNs: number): Foreign {
  const ran = tasks.flatMap((task) => {
    const before = foreign?.tasks.get(keyOf(task));
    const isBorn = wasBornSince(task, (foreign ?? since).bootNs);
    const runTimeNs = runTime(task, before, isBorn);
    const isNew = before === undefined && (foreign !== null || isBorn);
    const hasRun = before !== undefined && task.runTimeNs > before.runTimeNs;
    return task.isRunnable || isNew || hasRun ? [{ ...task, runTimeNs }] : [];
  });
  const previousKeys = new Set(foreign?.ran.map(keyOf));
  const newcomers = ran.filter((task) => task.kind === 'user' && !previousKeys.has(keyOf(task)));
  return { bootNs, tasks: byKey(tasks), ran, count: (foreign?.count ?? 0) + newcomers.length };
}

function runTime(
  { runTimeNs }: TaskSnapshot,
  before: TaskSnapshot | undefined,
  isBorn: boolean,
): number | null {
  if (before === undefined) return isBorn ? runTimeNs : null;
  return Math.max(runTimeNs - before.runTimeNs, 0);
}

/** The audit of an account, up to its last snapshot. */
export function auditOf(account: Account, grant: string, enforcement: EnforcementLevel): GrantAudit {
  const { since, last, ended, foreign, throttling } = account;
  const threads = last.threads.map((thread) => {
    const { pid, tid, role, cpus, processor } = thread;
    return { pid, tid, role, cpus, processor, ...threadCounters(account, thread) };
  });
  const cpus = last.cpus.map(({ cpu, counters, frequencyKHz }) => ({
    cpu,
    ...difference(CPU_COUNTERS, counters, account.cpus.get(cpu)!),
    frequencyKHz,
    foreign: last.tasks && foreign ? foreignOn(cpu, foreign) : null,
  }));
  const throttled = [...last.throttling].map(([file, counters]) =>
    difference(THROTTLING_COUNTERS, counters, throttling.get(file)!),
  );
  return {
    grant,
    enforcement,
    since: new Date(since.time).toISOString(),
    elapsedMs: Math.max(last.bootNs - since.bootNs, 0) / 1e6,
    threads,
    cpus,
    seesAllTasks: last.seesAll,
    throttling:
      throttled.length === 0 ? null : sum(THROTTLING_COUNTERS, [account.throttledBefore, ...throttled]),
    offNodePages: last.offNode?.pages ?? null,
    offNodeBytes: last.offNode?.bytes ?? null,
    totals: {
      ...sum(THREAD_COUNTERS, [ended.counters, ...threads]),
      ...sum(CPU_COUNTERS, [account.cpusBefore, ...cpus]),
      endedThreads: ended.threads,
      foreignTasks: foreign?.count ?? null,
    },
  };
}

function foreignOn(cpu: number, { ran }: Foreign): ForeignTask[] {
  return ran
    .filter(({ processor }) => processor === cpu)
    .map(({ pid, tid, command, kind, bound, runTimeNs }) => ({ pid, tid, command, kind, bound, runTimeNs }));
}
