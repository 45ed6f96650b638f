// Processes of root's other programs, found by name.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { textOf } from '../base/text/text-of.js';

export interface NamedProcess {
  readonly pid: number;
  readonly name: string;
}

// Every user may name a program as he likes. Owners in /proc do not tell: a process that cannot be
// dumped belongs to root there. Uids of another user namespace never read 0 here.
function isRoots(folder: string): boolean {
  const uids = /^Uid:\s*(.*)$/m.exec(textOf(join(folder, 'status')) ?? '')?.[1];
  return uids?.split(/\s+/).every((uid) => uid === '0') === true && !isSetuid(join(folder, 'exe'));
}

// Such as `sudo` under another name, which asks a user for a password. Only root can look.
function isSetuid(program: string): boolean {
  try {
    return (statSync(program).mode & 0o4000) !== 0;
  } catch {
    return false;
  }
}

/**
 * Root's processes of these names that this process can see, one after another: there can be
 * thousands to look at. `root`: where the machine's files are, for tests.
 */
export function* namedProcesses(names: readonly string[], root = '/'): Generator<NamedProcess> {
  let pids: string[];
  try {
    pids = readdirSync(join(root, '/proc'));
  } catch {
    return;
  }
  for (const pid of pids) {
    if (!/^\d+$/.test(pid)) continue;
    const name = textOf(join(root, '/proc', pid, 'comm'))?.trim();
    if (name === undefined || !names.includes(name)) continue;
    if (isRoots(join(root, '/proc', pid))) yield { pid: Number(pid), name };
  }
}
