// Who lives, as the kernel's locks tell it.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Whether anybody has locked the file with this inode. */
export const isLocked = (inode) =>
  new RegExp(` \\w+:\\w+:${inode} `).test(readFileSync('/proc/locks', 'latin1'));

/** Whether the file of an owner is nobody's any more. */
export function isDeadOwner(stateDir, uuid) {
  const file = statSync(join(stateDir, 'owners', uuid), { throwIfNoEntry: false });
  return file === undefined || !isLocked(file.ino);
}
