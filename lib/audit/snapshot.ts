// Snapshot: what the threads and CPUs of a grant have done up to a moment, and which other tasks
// are on the CPUs. See proc_pid_schedstat(5), proc_pid_sched, proc_pid_stat(5), /proc/interrupts,
// /proc/softirqs, /proc/stat and cpufreq.
import { native } from '../base/native.js';
import {
  CPU_ACTIVITY_COLUMNS,
  CPU_COUNTERS,
  type NativeThreads,
  THREAD_COLUMNS,
  THREAD_COUNTERS,
} from '../base/native-tables.js';
import { THREAD_ROLES } from '../base/native-threads.js';
import { CpuSet, type NodeSet } from '../machine/cpu-set.js';
import { BEGINNING, type Beginning } from './beginning.js';
import { type CpuCounters, makeCounters, type ThreadCounters, type ThrottlingCounters } from './counters.js';
import type { Subject } from './subject.js';
import { orNull, rowsIn, type TaskScan } from './task-scan.js';
import { readCpuStats, throttlingIn } from './throttling.js';

/**
 * One thread of the grant: it may only run on the grant's CPUs. If a grant of this process has no
 * such thread: any thread of this process.
 */
export interface ThreadSnapshot {
  readonly pid: number;
  readonly tid: number;
  /**
   * Time since boot, to 10 ms. With `tid` it distinguishes a thread from a later one with the same
   * id.
   */
  readonly startNs: number;
  readonly role: (typeof THREAD_ROLES)[number];
  readonly cpus: CpuSet;
  readonly processor: number;
  readonly counters: ThreadCounters;
}

export interface CpuSnapshot {
  readonly cpu: number;
  readonly counters: CpuCounters;
  readonly frequencyKHz: number | null;
}

/** A task that is not the grant's and is on one of its CPUs, or last was. */
export interface TaskSnapshot extends Pick<ThreadSnapshot, 'pid' | 'tid' | 'startNs' | 'processor'> {
  readonly command: string;
  /** `owner`: a thread of the grant's own processes that may also run elsewhere. */
  readonly kind: 'owner' | 'user' | 'kernel';
  /** True for a kernel thread that is bound to its CPU, so it cannot be moved. */
  readonly bound: boolean;
  readonly isRunnable: boolean;
  readonly runTimeNs: number;
}

export interface Snapshot {
  /** Wall-clock time in milliseconds. */
  readonly time: number;
  /** Nanoseconds since boot. */
  readonly bootNs: number;
  readonly threads: readonly ThreadSnapshot[];
  readonly cpus: readonly CpuSnapshot[];
  /** Null if tasks were not looked at. */
  readonly tasks: readonly TaskSnapshot[] | null;
  /** True if no process was hidden from this one. Null if tasks were not looked at. */
  readonly seesAll: boolean | null;
  /** By the path of the cpu.stat file. */
  readonly throttling: ReadonlyMap<string, ThrottlingCounters>;
  /** Null if memory was not looked at, or cannot be read. */
  readonly offNode: OffNodeMemory | null;
}

/** Memory of a grant's processes that is on other NUMA nodes than the grant's. */
export interface OffNodeMemory {
  readonly pages: number;
  readonly bytes: number;
}

/** What to look at besides the threads. */
export interface Views {
  readonly scan: TaskScan | null;
  /** By CPU number, so that many grants do not search through all CPUs. */
  readonly cpus: ReadonlyMap<number, CpuSnapshot>;
  /** True if it also covers where the memory is. */
  readonly memory: boolean;
}

/** `frequency`: some kernels interrupt each CPU to learn it. */
export function snapshotCpus(cpus: CpuSet, interrupts: boolean, frequency = true): Map<number, CpuSnapshot> {
  return new Map(cpusIn(native.cpuActivity(cpus.words, interrupts, frequency)).map((one) => [one.cpu, one]));
}

function cpusIn(rows: Float64Array): CpuSnapshot[] {
  return rowsIn(CPU_ACTIVITY_COLUMNS, rows).map(({ cpu, frequencyKHz, ...row }) => {
    const counters = makeCounters(CPU_COUNTERS, (name) => orNull(row[name]));
    return { cpu, counters, frequencyKHz: orNull(frequencyKHz) };
  });
}

function threadsIn(rows: Float64Array, cpusOf: (row: number) => CpuSet): ThreadSnapshot[] {
  return rowsIn(THREAD_COLUMNS, rows).map(({ pid, tid, startNs, processor, role, ...row }, i) => ({
    pid,
    tid,
    startNs,
    processor,
    role: THREAD_ROLES[role]!,
    cpus: cpusOf(i),
    counters: makeCounters(THREAD_COUNTERS, (name) => orNull(row[name])),
  }));
}

/** Only counters: without roles of threads, and the CPUs where they run. */
export function snapshotOf({ time, rows, throttling }: Beginning): Snapshot {
  const [bootNs, threads] = [rows[0]!, rows[1]!];
  const cpusAt = BEGINNING + threads * THREAD_COLUMNS.length;
  return {
    time,
    bootNs,
    threads: threadsIn(rows.subarray(BEGINNING, cpusAt), () => CpuSet.EMPTY),
    cpus: cpusIn(rows.subarray(cpusAt)),
    tasks: null,
    seesAll: null,
    throttling: throttlingIn(throttling),
    offNode: null,
  };
}

/** Never throws: what cannot be read is null, and a process that has ended has no threads. */
export function takeSnapshot(
  { cpus, roots, knownPids, isOwn, memoryNodes }: Subject,
  views: Views,
): Snapshot {
  const { scan } = views;
  const descendants = scan?.below(roots) ?? new Set(roots);
  const confinedPids = scan ? [...descendants].filter((pid) => scan.isConfined(pid)) : [];
  const processes = new Set([...roots, ...knownPids, ...confinedPids]);
  const { rows, masks, bootNs } = threadsOf(processes, { isOwn, cpus });
  const threads = threadsIn(rows, (row) => new CpuSet(masks[row]!));
  const pids = new Set(threads.map(({ pid }) => pid));
  return {
    time: Date.now(),
    bootNs,
    threads,
    cpus: [...cpus].flatMap((cpu) => views.cpus.get(cpu) ?? []),
    tasks: scan && foreignTasks(scan, cpus, descendants, threads),
    seesAll: scan?.seesAll ?? null,
    throttling: throttlingIn(readCpuStats(pids)),
    offNode: views.memory ? offNodeMemory(pids, memoryNodes) : null,
  };
}

// If nothing is pinned for a grant of this process, all its threads count, wherever else they run.
function threadsOf(
  processes: Iterable<number>,
  { isOwn, cpus }: Pick<Subject, 'isOwn' | 'cpus'>,
): NativeThreads {
  const threads = native.threadActivity(Int32Array.from(processes), cpus.words, true);
  if (threads.rows.length > 0 || !isOwn) return threads;
  return native.threadActivity(Int32Array.of(process.pid), cpus.words, false);
}

function foreignTasks(
  scan: TaskScan,
  cpus: CpuSet,
  owners: ReadonlySet<number>,
  threads: readonly ThreadSnapshot[],
): TaskSnapshot[] {
  const tids = new Set(threads.map(({ tid }) => tid));
  return scan.on(cpus).flatMap(({ isKernel, isBound, isConfined, ...task }): TaskSnapshot[] => {
    const isOwner = isKernel === 0 && owners.has(task.pid);
    // If confined, it has just ended, or belongs to another grant of the same owner.
    if (tids.has(task.tid) || (isOwner && isConfined === 1)) return [];
    const kind = isKernel === 1 ? 'kernel' : isOwner ? 'owner' : 'user';
    return [{ ...task, kind, bound: isBound === 1, isRunnable: task.isRunnable === 1 }];
  });
}

/** Memory of these processes on other nodes; null if it cannot be read. */
function offNodeMemory(pids: Iterable<number>, nodes: NodeSet): OffNodeMemory | null {
  let [pages, bytes] = [0, 0];
  for (const pid of pids) {
    const { byNode, pageBytes, source } = native.memoryPlacement(pid);
    if (source === '') return null;
    for (let i = 0; i < byNode.length; i += 2) {
      if (nodes.has(byNode[i]!)) continue;
      bytes += byNode[i + 1]!;
      pages += byNode[i + 1]! / pageBytes;
    }
  }
  return { pages, bytes };
}
