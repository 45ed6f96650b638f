// What the lock's file says of the process that has the lock, and whether that process is stopped.
// For people: it decides nothing.
import { ENVIRONMENT } from '../../base/registry.js';
import { identifySelf, isSameStart, pidNamespace, statOf } from '../../processes/process-identity.js';
import { processCommand } from './owner-record.js';

export interface LockHolder {
  /** For messages. */
  readonly holder: string;
  readonly pid: number | null;
  /**
   * A signal such as SIGSTOP, or a debugger, holds it. False where that cannot be told from here.
   */
  readonly isStopped: boolean;
}

const writeNote = () =>
  `${process.pid} ${processCommand()}\nstarted ${identifySelf().start} in ${pidNamespace()}\n`;

/** This process, as the lock's file shall name it: a line for people, and by which to find it. */
export const lockNote = () => ENVIRONMENT.of(writeNote);

export function lockHolder(note: string): LockHolder {
  const [holder = '', found = ''] = note.split('\n');
  const pid = /^(\d+) /.exec(holder)?.[1];
  if (pid === undefined) return { holder: holder || 'an unknown process', pid: null, isStopped: false };
  const [, start, namespace] = /^started (\d+) in (\S+)$/.exec(found) ?? [];
  return {
    holder,
    pid: Number(pid),
    isStopped: namespace === pidNamespace() && isStopped(Number(pid), start!),
  };
}

function isStopped(pid: number, start: string): boolean {
  try {
    const now = statOf(pid);
    return isSameStart(now.start, start) && /^[Tt]$/.test(now.state);
  } catch {
    // It has ended, or /proc does not show it.
    return false;
  }
}
