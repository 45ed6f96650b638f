// Finds processes of root's other programs by name.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { textOf, unlessClosed, unlessThrown } from '../base/errors.js';

export interface NamedProcess {
  readonly pid: number;
  readonly name: string;
}

// Any user may give a program any name. Owners in /proc prove nothing: a process that cannot be
// dumped belongs to root there. A uid of another user namespace never reads 0 here.
function isRoots(folder: string): boolean {
  const uids = /^Uid:\s*(.*)$/m.exec(textOf(join(folder, 'status')) ?? '')?.[1];
  return uids?.split(/\s+/).every((uid) => uid === '0') === true && !isSetuid(join(folder, 'exe'));
}

// A setuid program like `sudo` under another name, which asks a user for a password. Only root can
// check.
function isSetuid(program: string): boolean {
  return unlessThrown(() => (statSync(program).mode & 0o4000) !== 0, false);
}

/**
 * Root's visible processes with these names, one by one, because there can be thousands to check.
 * `root`: the folder of the machine's files, for tests.
 */
export function* namedProcesses(names: readonly string[], root = '/'): Generator<NamedProcess> {
  for (const pid of unlessClosed(() => readdirSync(join(root, '/proc')), [])) {
    if (!/^\d+$/.test(pid)) continue;
    const name = textOf(join(root, '/proc', pid, 'comm'))?.trim();
    if (name === undefined || !names.includes(name)) continue;
    if (isRoots(join(root, '/proc', pid))) yield { pid: Number(pid), name };
  }
}
