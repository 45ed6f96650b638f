// ProcessIdentity: which process a pid meant. proc(5): a pid is given again, a pid and its start
// time are not. A process that /proc does not show may live all the same: /proc may be mounted with
// hidepid, or show the processes of another pid namespace.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { ENVIRONMENT } from '../base/registry.js';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, decimal, as the first time namespace counts. */
  readonly start: string;
  /** The pid namespace of `pid`, as /proc/self/ns/pid reads; empty where that cannot be read. */
  readonly namespace: string;
}

interface ProcessStat {
  readonly state: string;
  readonly parent: string;
  readonly start: string;
}

// linux/proc_ns.h: the pid namespace that contains all others, and the time namespace without a
// shift.
export const INITIAL_PID_NAMESPACE = 'pid:[4026531836]';
const INITIAL_TIME_NAMESPACE = 'time:[4026531834]';
// USER_HZ, which is the same on every architecture that Node.js runs on.
const TICKS = 100;

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

/** What does not change while this process runs; where it cannot be read, it is read again. */
class ThisProcess {
  #namespace = '';
  #shift: number | undefined;
  #start: string | undefined;

  // A process stays in the one that it was born in.
  get namespace(): string {
    this.#namespace ||= linkOf('/proc/self/ns/pid');
    return this.#namespace;
  }

  // time_namespaces(7): the kernel shifts the start times that it tells a process by the offset of
  // that process's time namespace.
  get shiftTicks(): number {
    this.#shift ??= readShift();
    return this.#shift;
  }

  // Where /proc does not show it, any start time will do that no other process has.
  get start(): string {
    try {
      this.#start ??= statOf('self').start;
    } catch {
      this.#start = String(process.hrtime.bigint());
    }
    return this.#start;
  }
}

const newThisProcess = () => new ThisProcess();
const thisProcess = () => ENVIRONMENT.of(newThisProcess);

/** Of this process. */
export const pidNamespace = () => thisProcess().namespace;

/** Whether pids in /proc are those of this process's pid namespace. */
export const isProcOurs = () => linkOf('/proc/self') === String(process.pid);

/** Whether no process has this pid. A system call, so that it is true whatever /proc shows. */
export function isUnused(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function readShift(): number {
  // The file tells the offsets of the namespace of future children, which may be another one.
  if (linkOf('/proc/self/ns/time') === INITIAL_TIME_NAMESPACE) return 0;
  try {
    const [, seconds, nanoseconds] = /^boottime\s+(-?\d+)\s+(\d+)$/m.exec(
      readFileSync('/proc/self/timens_offsets', 'latin1'),
    )!;
    return Number(seconds) * TICKS + Number(nanoseconds) / (1e9 / TICKS);
  } catch {
    // Kernels before 5.6 have no such namespaces.
    return 0;
  }
}

/**
 * State, parent and start time of a process. The command stands in parentheses and may contain
 * some; the start time is the 22nd field.
 * @throws where it has ended, or /proc does not show it
 */
export function statOf(pid: number | 'self'): ProcessStat {
  const isOwn = pid === 'self' || pid === process.pid;
  if (!isOwn && !isProcOurs()) throw new Error('/proc shows another pid namespace');
  const fields = readFileSync(`/proc/${isOwn ? 'self' : pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ');
  return {
    state: fields[0]!,
    parent: fields[1]!,
    start: String(Math.round(Number(fields[19]) - thisProcess().shiftTicks)),
  };
}

/** Whether two start times are of one process. A shift by a part of a tick is rounded away. */
export const isSameStart = (a: string, b: string) => Math.abs(Number(a) - Number(b)) <= 1;

const isZombie = ({ state }: ProcessStat) => /^[ZX]$/.test(state);

/**
 * Whether no process of this pid runs, or only a zombie. False where a process has this pid that
 * /proc does not show.
 */
export function hasEnded(pid: number): boolean {
  try {
    return isZombie(statOf(pid));
  } catch {
    return isUnused(pid);
  }
}

export function identifySelf(): ProcessIdentity {
  const { start, namespace } = thisProcess();
  return { pid: process.pid, start, namespace };
}

/** The process with this pid now; undefined where there is none, or /proc does not show it. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (pid === process.pid) return identifySelf();
  try {
    return { pid, start: statOf(pid).start, namespace: pidNamespace() };
  } catch {
    return undefined;
  }
}

/** Whether the process lives; undefined where that cannot be told from here. */
export function isProcessRunning(identity: ProcessIdentity): boolean | undefined {
  const { pid, start, namespace } = identity;
  if (namespace !== pidNamespace() || namespace === '') return undefined;
  if (pid === process.pid) return isSameStart(identifySelf().start, start);
  try {
    const now = statOf(pid);
    // A zombie runs no more.
    return isSameStart(now.start, start) && !isZombie(now);
  } catch {
    return isUnused(pid) ? false : undefined;
  }
}

/**
 * The real and the effective user of a process, who may move it (sched_setaffinity(2)). Undefined
 * where they cannot be seen.
 */
export function usersOf(pid: number): readonly number[] | undefined {
  try {
    if (!isProcOurs()) return undefined;
    const [, ...users] = /^Uid:\s+(\d+)\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!;
    return users.map(Number);
  } catch {
    return undefined;
  }
}

/** The pid of a process in its own pid namespace. proc(5): the last of NSpid. */
export function innerPid(pid: number): number | undefined {
  try {
    return Number(/^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]);
  } catch {
    return undefined;
  }
}

/**
 * Whether a process of another pid namespace has ended. False where that cannot be told: only root
 * in the first pid namespace sees the processes of all others.
 */
export function hasEndedElsewhere({ pid, start, namespace }: ProcessIdentity): boolean {
  if (pidNamespace() !== INITIAL_PID_NAMESPACE || process.geteuid?.() !== 0) return false;
  try {
    // A thread of the kernel: if it is hidden, other processes are.
    statOf(2);
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return !pids.map(Number).some((here) => {
      // Empty where that may not be looked at.
      const there = linkOf(`/proc/${here}/ns/pid`);
      if (there !== '' && there !== namespace) return false;
      return innerPid(here) === pid && isSameStart(identifyProcess(here)?.start ?? '', start);
    });
  } catch {
    return false;
  }
}
