// Account: what has happened on a grant's CPUs since a beginning, kept up from snapshot to
// snapshot. Pure: an audit is the difference of two snapshots, and of those who have ended in
// between what was last seen of them.
import type { EnforcementLevel } from '../account/pod-assignment.js';
import type { CpuSet } from '../machine/cpu-set.js';
import {
  CPU_COUNTERS,
  type CpuCounters,
  difference,
  sum,
  THREAD_COUNTERS,
  THROTTLING_COUNTERS,
  type ThreadCounters,
  type ThrottlingCounters,
  zero,
} from './counters.js';
import type { Snapshot, TaskSnapshot, ThreadSnapshot } from './snapshot.js';

/** What a thread of the grant did since the beginning, or since it came to these CPUs. */
export interface ThreadAudit extends ThreadCounters {
  readonly pid: number;
  readonly tid: number;
  /** Its role. Of threads of other processes only the main one is known. */
  readonly role: ThreadSnapshot['role'];
  /** Where it may run now; also outside of the grant, if it is not pinned. */
  readonly cpus: CpuSet;
  /** The CPU that it runs on, or ran on last. */
  readonly processor: number;
}

/** A task of another process that was on the CPUs since the last audit. */
export interface ForeignTask {
  readonly pid: number;
  readonly tid: number;
  readonly command: string;
  /**
   * `user`: another process. `owner`: a thread of the grant's own processes that may also run
   * elsewhere. `kernel`: a kernel thread.
   */
  readonly kind: TaskSnapshot['kind'];
  /** Whether it is a kernel thread that is bound to its CPU: nothing can keep it off. */
  readonly bound: boolean;
  /** How long it ran since the last audit, on any CPU; null if it was on other CPUs then. */
  readonly runTimeNs: number | null;
}

/** What happened on one CPU. */
export interface CpuAudit extends CpuCounters {
  readonly cpu: number;
  /** The frequency at this moment; null without cpufreq. */
  readonly frequencyKHz: number | null;
  /** The tasks of other processes on it; null with `foreign: false`. */
  readonly foreign: readonly ForeignTask[] | null;
}

/** Sums over all threads and CPUs, with what CPUs did before the grant lost them. */
export interface AuditTotals extends ThreadCounters, CpuCounters {
  /** Threads that ended or left these CPUs. The sums include what the last audit saw of them. */
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
  readonly grant: string;
  readonly enforcement: EnforcementLevel;
  /** Wall-clock time in ISO 8601. */
  readonly since: string;
  readonly elapsedMs: number;
  /**
   * The threads of the owner and its children that are confined to the grant's CPUs; if there are
   * none, for a grant of this process, all its threads that may run there.
   */
  readonly threads: readonly ThreadAudit[];
  readonly cpus: readonly CpuAudit[];
  /**
   * Whether no process is hidden from this one, so that `foreign` can be complete. Not so in most
   * containers. null with `foreign: false`.
   */
  readonly seesAllTasks: boolean | null;
  /**
   * Of the cgroups of the grant's processes, and those above. null where none has a quota's
   * account.
   */
  readonly throttling: ThrottlingCounters | null;
  /**
   * Pages of the grant's processes that are on other NUMA nodes than its own at this moment. null
   * without `memory: true`.
   */
  readonly offNodePages: number | null;
  /** The same in bytes. */
  readonly offNodeBytes: number | null;
  readonly totals: AuditTotals;
}

type RanTask = Omit<TaskSnapshot, 'runTimeNs'> & Pick<ForeignTask, 'runTimeNs'>;

interface Foreign {
  readonly bootNs: number;
  /** All tasks that are there, by {@link keyOf}. */
  readonly tasks: ReadonlyMap<string, TaskSnapshot>;
  /** Those that have run since the look before. */
  readonly ran: readonly RanTask[];
  readonly count: number;
}

export interface Account {
  readonly since: Snapshot;
  readonly last: Snapshot;
  /** What counts as the beginning of each thread, by {@link keyOf}. */
  readonly threads: ReadonlyMap<string, ThreadCounters>;
  readonly ended: { readonly threads: number; readonly counters: ThreadCounters };
  readonly cpus: ReadonlyMap<number, CpuCounters>;
  /** Of CPUs that the grant has no more. */
  readonly cpusBefore: CpuCounters;
  readonly throttling: ReadonlyMap<string, ThrottlingCounters>;
  /** Of cgroups in which no process is any more. */
  readonly throttledBefore: ThrottlingCounters;
  /** null: nobody has looked yet. */
  readonly foreign: Foreign | null;
}

// To which the start of a thread is told.
const START_NS = 10_000_000;

// Thread ids are given again.
const keyOf = ({ tid, startNs }: Pick<ThreadSnapshot, 'tid' | 'startNs'>) => `${tid} ${startNs}`;

const wasBornSince = ({ startNs }: Pick<ThreadSnapshot, 'startNs'>, bootNs: number) =>
  startNs + START_NS > bootNs;

/** Begins with a snapshot. */
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
 * Goes on with the next snapshot. Whatever comes in between counts from when it was first seen, but
 * a thread that was born in between from its birth.
 */
export function advance(account: Account, snapshot: Snapshot): Account {
  const { since, last } = account;
  const threads = new Map(
    snapshot.threads.map((thread) => {
      const born = wasBornSince(thread, last.bootNs) ? zero(THREAD_COUNTERS) : thread.counters;
      return [keyOf(thread), account.threads.get(keyOf(thread)) ?? born];
    }),
  );
  const gone = last.threads.filter((thread) => !threads.has(keyOf(thread)));
  const cpus = new Map(snapshot.cpus.map(({ cpu, counters }) => [cpu, account.cpus.get(cpu) ?? counters]));
  const lost = last.cpus.filter(({ cpu }) => !cpus.has(cpu));
  const left = [...last.throttling].filter(([file]) => !snapshot.throttling.has(file));
  return {
    since,
    last: snapshot,
    threads,
    ended: {
      threads: account.ended.threads + gone.length,
      counters: sum(THREAD_COUNTERS, [
        account.ended.counters,
        ...gone.map((thread) => threadCounters(account, thread)),
      ]),
    },
    cpus,
    cpusBefore: sum(CPU_COUNTERS, [
      account.cpusBefore,
      ...lost.map(({ cpu, counters }) => difference(CPU_COUNTERS, counters, account.cpus.get(cpu)!)),
    ]),
    throttling: new Map(
      [...snapshot.throttling].map(([file, counters]) => [file, account.throttling.get(file) ?? counters]),
    ),
    throttledBefore: sum(THROTTLING_COUNTERS, [
      account.throttledBefore,
      ...left.map(([file, counters]) =>
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

// A task has run on these CPUs since the last look if its run time has grown, if it was not there
// then, or if it waits to run right now. (The kernel puts a task on a CPU only to run it there.) Of
// the first look only what is runnable or was born since the beginning is known.
function nextForeign({ since, foreign }: Account, tasks: readonly TaskSnapshot[], bootNs: number): Foreign {
  const ran = tasks.flatMap((task) => {
    const before = foreign?.tasks.get(keyOf(task));
    const isBorn = wasBornSince(task, (foreign ?? since).bootNs);
    const runTimeNs = runTime(task, before, isBorn);
    const isNew = before === undefined && (foreign !== null || isBorn);
    const hasRun = before !== undefined && task.runTimeNs > before.runTimeNs;
    return task.isRunnable || isNew || hasRun ? [{ ...task, runTimeNs }] : [];
  });
  const earlier = new Set(foreign?.ran.map(keyOf));
  const came = ran.filter((task) => task.kind === 'user' && !earlier.has(keyOf(task)));
  return { bootNs, tasks: byKey(tasks), ran, count: (foreign?.count ?? 0) + came.length };
}

function runTime(
  { runTimeNs }: TaskSnapshot,
  before: TaskSnapshot | undefined,
  isBorn: boolean,
): number | null {
  if (before === undefined) return isBorn ? runTimeNs : null;
  return Math.max(runTimeNs - before.runTimeNs, 0);
}

/** What the account says up to its last snapshot. */
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
