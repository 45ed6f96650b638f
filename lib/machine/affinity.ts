// Affinity of threads: reads and sets masks, and reports what the kernel did. Follows
// sched_setaffinity(2) and sched_getaffinity(2).
import { checkOptions, invalidOption } from '../base/check-options.js';
import { errnoName } from '../base/codes/errno.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeMove, NativePinOutcome, ThreadRole } from '../base/native-threads.js';
import { cpusNamed } from '../base/text/cpus-named.js';
import { CpuSet } from './cpu-set.js';
import { readOnlineCpus } from './online-cpus.js';

/**
 * Which threads: `process`, all of this process; `current`, the calling one; or a thread id of this
 * process (others are ESRCH).
 */
export type Threads = 'process' | 'current' | number;

/** A thread that was moved. */
export interface MovedThread {
  /** Its Linux thread id, as gettid(2). */
  readonly tid: number;
  /** The CPUs it may run on now, read back from the kernel. */
  readonly cpus: CpuSet;
  /** The CPUs it could run on before. */
  readonly before: CpuSet;
}

/** A thread that is not where it should be. */
export interface UnmovableThread extends MovedThread {
  /**
   * The kernel's refusal, for example `EPERM`; or `clipped` if the kernel silently dropped CPUs
   * that are offline or outside the cpuset.
   */
  readonly reason: string;
}

/** What became of each thread of a pin. */
export interface PinResult {
  /** Threads whose mask is now exactly the requested CPUs. */
  readonly moved: readonly MovedThread[];
  /** Threads that the kernel left elsewhere, or gave only some of the CPUs. */
  readonly unmovable: readonly UnmovableThread[];
  /**
   * Whether no thread can have been missed. A whole process is certain only if its cgroup moves it:
   * threads can start while /proc/self/task is read.
   */
  readonly guaranteed: boolean;
}

/**
 * What numalign knows of a thread of this process. On Node 20 all threads have the same name, so
 * most are `other` (V8's helpers, libuv). Newer versions name them.
 */
export interface ThreadInfo {
  /** Its Linux thread id, as gettid(2). */
  readonly tid: number;
  /**
   * `worker`: a Worker that has loaded numalign, or was started by {@link Grant.worker}. `pool`: a
   * thread of libuv's pool, known by its name or because it has run a job of numalign ({@link
   * probePool} finds all). `v8`: a helper of V8, known by its name.
   */
  readonly role: ThreadRole;
  /** The CPUs that it may run on, by sched_getaffinity(2). */
  readonly cpus: CpuSet;
}

/** The options of {@link pin} with a list of CPUs. */
export interface PinOptions {
  /**
   * Which threads to pin: `process` (all of this process), `current`, or a thread id.
   * @default `process`
   */
  threads?: Threads;
}

function fromMove({ tid, now, before }: NativeMove): MovedThread {
  return { tid, cpus: new CpuSet(now), before: new CpuSet(before) };
}

/** The reason if the kernel silently dropped CPUs from a mask. */
export const CLIPPED = 'clipped';

/** Converts the addon's account to the public one. */
export function toPinResult(outcome: NativePinOutcome, wholeProcess: boolean): PinResult {
  return {
    moved: outcome.moved.map(fromMove),
    unmovable: outcome.unmovable.map((move) => ({
      ...fromMove(move),
      reason: move.errno === 0 ? CLIPPED : errnoName(move.errno),
    })),
    guaranteed: !wholeProcess && outcome.unmovable.length === 0,
  };
}

export function toTid(threads: Threads): number {
  if (threads === 'process') return -1;
  if (threads === 'current') return 0;
  if (typeof threads === 'number' && Number.isInteger(threads) && threads > 0 && threads < 2 ** 31)
    return threads;
  return invalidOption('threads', threads, "'process', 'current' or a thread id");
}

/** What a grant adds to a pin: the owner that may undo it, and protection from other grants. */
export interface PinOwner {
  grant: string;
  /** The part of the grant; '': the CPUs of no part. */
  part: string;
  owner: string;
  replace: boolean;
}

const NO_OWNER: PinOwner = { grant: '', part: '', owner: '', replace: false };

// `cpus`: the kernel allows the thread none of them.
function refusalOf(cpus: CpuSet, tid: number, errno: number): NumalignError {
  const facts = { errno, syscall: 'sched_setaffinity', value: cpus.toString() };
  const online = readOnlineCpus();
  if (errnoName(errno) === 'EINVAL' && online && !cpus.intersects(online)) {
    return new NumalignError(
      'ERR_SYSCALL',
      `this machine has no ${cpusNamed(cpus)} online; it has ${cpusNamed(online)}`,
      { ...facts, valid: online.toString() },
    );
  }
  return new NumalignError(
    'ERR_SYSCALL',
    `the kernel refuses to run thread ${tid} on ${cpusNamed(cpus)}: ${errnoName(errno)}`,
    { ...facts, valid: 'CPUs that are online and in the cpuset of the process' },
  );
}

/** Pins for a grant, or without one. @throws as {@link pinToCpus}, and ERR_ALREADY_PINNED. */
export function pinFor(cpus: CpuSet, threads: Threads, { grant, part, owner, replace }: PinOwner): PinResult {
  if (cpus.isEmpty) {
    throw new NumalignError('ERR_INVALID_ARGUMENT', 'a thread needs at least one CPU to run on', {
      value: cpus,
      valid: 'a set that is not empty',
    });
  }
  const outcome = native.pin({ tid: toTid(threads), cpus: cpus.words, grant, part, owner, replace });
  const failure = outcome.moved.length === 0 && outcome.unmovable.find((move) => move.errno !== 0);
  if (failure) throw refusalOf(cpus, failure.tid, failure.errno);
  return toPinResult(outcome, threads === 'process');
}

/** Pins threads of this process without a grant. @throws as {@link pin} of the package */
export function pinToCpus(cpus: CpuSet | string, options: PinOptions = {}): PinResult {
  const { threads = 'process' } = checkOptions(options, ['threads'], 'pin') as PinOptions;
  return pinFor(CpuSet.coerce(cpus), threads, NO_OWNER);
}

/**
 * Pins one thread of this process, by default the calling one, as {@link pin} does with CPUs.
 * @throws as {@link pin}
 */
export function pinThread(cpus: CpuSet | string, tid?: number): PinResult {
  return pinFor(CpuSet.coerce(cpus), tid ?? 'current', NO_OWNER);
}

/**
 * Moves every thread of any process off CPUs by its mask, and reads the masks back. A thread with
 * no other CPU goes to `pool`. A process that has ended is not an error.
 * @throws ERR_SYSCALL if a thread stays
 */
export function moveProcess(pid: number, taken: CpuSet, pool: CpuSet): void {
  const { words: none } = CpuSet.EMPTY;
  const plan = native.planMember({
    pid,
    process: '',
    known: '',
    isAsked: false,
    unpinned: [],
    grants: [],
    limit: none,
    taken: taken.words,
    pool: pool.words,
    granted: none,
    onlyNarrow: false,
  });
  const [stuck] = (plan && native.moveMember(pid, false)?.stuck) ?? [];
  if (!stuck) return;
  throw new NumalignError(
    'ERR_SYSCALL',
    `thread ${stuck.tid} of process ${pid} cannot leave CPUs ${new CpuSet(stuck.cpus)}: ${stuck.errno === 0 ? CLIPPED : errnoName(stuck.errno)}`,
    {
      errno: stuck.errno,
      syscall: 'sched_setaffinity',
      value: pid,
      valid: `a process that may run on ${pool}`,
    },
  );
}

/**
 * Returns the CPUs that a thread may run on, by default the calling one, as sched_getaffinity(2)
 * reports them.
 * @throws ERR_SYSCALL (ESRCH: no such thread); ERR_INVALID_OPTION for a `tid` that is not a thread
 *   id
 */
export function affinity(tid?: number): CpuSet {
  if (tid !== undefined && typeof tid !== 'number') invalidOption('tid', tid, 'a thread id');
  return new CpuSet(native.affinity(tid === undefined ? 0 : toTid(tid)));
}

/** Returns the Linux id of the calling thread, as gettid(2). */
export function threadId(): number {
  return native.threadId();
}

/** Returns every thread of this process that /proc/self/task lists. */
export function threads(): ThreadInfo[] {
  return native.threads().map(({ tid, role, cpus }) => ({ tid, role, cpus: new CpuSet(cpus) }));
}
