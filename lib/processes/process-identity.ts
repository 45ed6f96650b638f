// ProcessIdentity: identifies a process by pid and start time. A pid is reused; a pid with its
// start time is not, see proc(5). A process that /proc does not show may still live: /proc may be
// mounted with hidepid, or show another pid namespace.
import { readdirSync, readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { linkOf, textOf, unlessThrown } from '../base/errors.js';
import { native } from '../base/native.js';
import { parseProcStat } from '../base/text/proc-stat.js';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, decimal, in the first time namespace. */
  readonly start: string;
  /** The pid namespace of `pid`, as /proc/self/ns/pid reads; empty if it cannot be read. */
  readonly namespace: string;
}

// linux/proc_ns.h: the pid namespace that contains all others, and the time namespace without an
// offset.
export const INITIAL_PID_NAMESPACE = 'pid:[4026531836]';
const INITIAL_TIME_NAMESPACE = 'time:[4026531834]';
// USER_HZ; the same on every architecture that Node.js runs on.
const TICKS = 100;

// Facts that do not change while this process runs. A failed read is repeated at the next use.
const newFacts = () => ({
  namespace: '',
  shiftTicks: undefined as number | undefined,
  start: undefined as string | undefined,
});
const facts = () => ENVIRONMENT.of(newFacts);

/** The pid namespace of this process, which never changes. */
export const pidNamespace = () => (facts().namespace ||= linkOf('/proc/self/ns/pid'));

// time_namespaces(7): start times in /proc are shifted by the offset of the reader's time namespace.
const shiftTicks = () => (facts().shiftTicks ??= readShift());

// If /proc does not show this process, any unique start time will do.
function ownStart(): string {
  const known = facts();
  try {
    known.start ??= statOf('self').start;
  } catch {
    known.start = String(process.hrtime.bigint());
  }
  return known.start;
}

/** True if /proc shows this process's pid namespace. */
export const isProcOurs = () => native.isProcOurs();

/** The pids of all processes that /proc shows. */
export const visiblePids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** True if no process has this pid. Uses a system call, which is right whatever /proc shows. */
export function isUnused(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function readShift(): number {
  // The file has the offsets for future children, whose namespace may be another.
  if (linkOf('/proc/self/ns/time') === INITIAL_TIME_NAMESPACE) return 0;
  // Kernels before 5.6 have no time namespaces.
  const offsets = textOf('/proc/self/timens_offsets') ?? '';
  const [, seconds = 0, nanoseconds = 0] = /^boottime\s+(-?\d+)\s+(\d+)$/m.exec(offsets) ?? [];
  return Number(seconds) * TICKS + Number(nanoseconds) / (1e9 / TICKS);
}

/**
 * State, parent, process group, session and start time of a process.
 * @throws if the process has ended, or /proc does not show it
 */
export function statOf(pid: number | 'self') {
  const isSelf = pid === 'self' || pid === process.pid;
  if (!isSelf && !isProcOurs()) throw new Error('/proc shows another pid namespace');
  const text = readFileSync(`/proc/${isSelf ? 'self' : pid}/stat`, 'utf8');
  const { state, ppid, pgrp, session, starttime } = parseProcStat(text);
  const start = String(Math.round(Number(starttime) - shiftTicks()));
  return { state, parent: ppid, group: pgrp, session, start };
}

/** When a process started, in milliseconds since 1970, to some hundredths of a second. */
export const startTimeOf = ({ start }: Pick<ProcessIdentity, 'start'>) =>
  Date.now() - uptime() * 1000 + ((Number(start) + shiftTicks()) * 1000) / TICKS;

/** True if two start times belong to one process. Rounding may shift them by a tick. */
export const isSameStart = (a: string, b: string) => Math.abs(Number(a) - Number(b)) <= 1;

const isZombie = ({ state }: ReturnType<typeof statOf>) => /^[ZX]$/.test(state);

/**
 * True if no process with this pid runs, except a zombie. False for a process that /proc does not
 * show.
 */
export function hasEnded(pid: number): boolean {
  try {
    return isZombie(statOf(pid));
  } catch {
    return isUnused(pid);
  }
}

export function identifySelf(): ProcessIdentity {
  return { pid: process.pid, start: ownStart(), namespace: pidNamespace() };
}

/**
 * Identifies the process with this pid now; undefined if there is none, or /proc does not show it.
 */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  if (pid === process.pid) return identifySelf();
  return unlessThrown(() => ({ pid, start: statOf(pid).start, namespace: pidNamespace() }));
}

/** True if the process lives; undefined if this process cannot tell. */
export function isProcessRunning(identity: ProcessIdentity): boolean | undefined {
  const { pid, start, namespace } = identity;
  if (namespace !== pidNamespace() || namespace === '') return undefined;
  if (pid === process.pid) return isSameStart(identifySelf().start, start);
  try {
    const now = statOf(pid);
    // A zombie does not run.
    return isSameStart(now.start, start) && !isZombie(now);
  } catch {
    return isUnused(pid) ? false : undefined;
  }
}

/**
 * The real and the effective user of a process, who may move it (sched_setaffinity(2)). Undefined
 * if they are not visible.
 */
export function usersOf(pid: number): readonly number[] | undefined {
  const text = isProcOurs() ? textOf(`/proc/${pid}/status`) : undefined;
  return /^Uid:\s+(\d+)\s+(\d+)/m
    .exec(text ?? '')
    ?.slice(1)
    .map(Number);
}

/** The pid of a process in its own pid namespace: the last number of NSpid, see proc(5). */
export function innerPid(pid: number): number | undefined {
  const text = textOf(`/proc/${pid}/status`);
  return text === undefined ? undefined : Number(/^NSpid:.*?(\d+)$/m.exec(text)?.[1]);
}

/**
 * True if a process of another pid namespace has ended. False if this process cannot tell: only
 * root in the first pid namespace sees the processes of all others.
 */
export function hasEndedElsewhere({ pid, start, namespace }: ProcessIdentity): boolean {
  if (pidNamespace() !== INITIAL_PID_NAMESPACE || process.geteuid?.() !== 0) return false;
  try {
    // Process 2 is a kernel thread. If it is hidden, others are too.
    statOf(2);
    return !visiblePids().some((outerPid) => {
      // Empty if this process may not read it.
      const otherNamespace = linkOf(`/proc/${outerPid}/ns/pid`);
      if (otherNamespace !== '' && otherNamespace !== namespace) return false;
      return innerPid(outerPid) === pid && isSameStart(identifyProcess(outerPid)?.start ?? '', start);
    });
  } catch {
    return false;
  }
}
