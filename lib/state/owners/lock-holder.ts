// Reads from the lock's file which process holds the lock, and whether it is stopped. For people;
// no decision depends on it.
import { ENVIRONMENT } from '../../base/collections/registry.js';
import { identifySelf, isSameStart, pidNamespace, statOf } from '../../processes/process-identity.js';
import { processCommand } from './owner-record.js';

const writeNote = () =>
  `${process.pid} ${processCommand()}\nstarted ${identifySelf().start} in ${pidNamespace()}\n`;

/**
 * The note about this process in the lock's file: a line for people, and a line that identifies it.
 */
export const lockNote = () => ENVIRONMENT.of(writeNote);

/**
 * `holder`: the process for messages. `isStopped`: a signal like SIGSTOP or a debugger has stopped it;
 * false if this process cannot see that.
 */
export function lockHolder(note: string) {
  const [holder = '', found = ''] = note.split('\n');
  const pid = /^(\d+) /.exec(holder)?.[1];
  if (pid === undefined) return { holder: holder || 'an unknown process', pid: null, isStopped: false };
  const [, start, namespace] = /^started (\d+) in (\S+)$/.exec(found) ?? [];
  const isSeen = namespace === pidNamespace();
  return { holder, pid: Number(pid), isStopped: isSeen && isStopped(Number(pid), start!) };
}

function isStopped(pid: number, start: string): boolean {
  try {
    const now = statOf(pid);
    return isSameStart(now.start, start) && /^[Tt]$/.test(now.state);
  } catch {
    // The process has ended, or /proc does not show it.
    return false;
  }
}
