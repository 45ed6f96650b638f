// ProcessIdentity: which process a pid meant. proc(5): a pid is given again, a pid and its start time are not.
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, decimal. */
  readonly start: string;
  /** The pid namespace that `pid` is of, as /proc/self/ns/pid reads. */
  readonly namespace: string;
}

export const pidNamespace = () => readlinkSync('/proc/self/ns/pid');

/** State, parent and start time of a process. The command stands in parentheses and may have any in it; the start time is the 22nd field. @throws where it has ended */
export function statOf(pid: number | 'self'): { state: string; parent: string; start: string } {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ');
  return { state: fields[0]!, parent: fields[1]!, start: fields[19]! };
}

/** The process with this pid now, seen from here; undefined where there is none. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  try {
    return { pid, start: statOf(pid).start, namespace: pidNamespace() };
  } catch {
    return undefined;
  }
}

/** Whether the process lives; undefined where its pid says nothing here. */
export function isProcessRunning({ pid, start, namespace }: ProcessIdentity): boolean | undefined {
  if (namespace !== pidNamespace()) return undefined;
  try {
    const now = statOf(pid);
    // A zombie runs no more.
    return now.start === start && !/^[ZX]$/.test(now.state);
  } catch {
    return false;
  }
}
