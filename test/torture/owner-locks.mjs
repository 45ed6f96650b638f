// Which owners live, by the kernel's locks.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** True if a process has locked the file with this inode. */
export const isLocked = (inode) =>
  new RegExp(` \\w+:\\w+:${inode} `).test(readFileSync('/proc/locks', 'latin1'));

/** True if the file of an owner has lost its owner. */
export function isDeadOwner(stateDir, uuid) {
  const file = statSync(join(stateDir, 'owners', uuid), { throwIfNoEntry: false });
  return file === undefined || !isLocked(file.ino);
}
