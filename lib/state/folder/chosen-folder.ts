// ChosenFolder: the state folder of a process that names none.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { invalidOption } from '../../base/check-options.js';
import { MACHINE_STATE_DIR } from '../../input/values/machine-folder.js';

const STATE_DIR_VARIABLE = 'NUMALIGN_STATE_DIR';

// linux/auxvec.h
const AT_SECURE = 23n;

// By the kernel's word to a program that has more rights than its caller: pairs of a key and a value.
// Such a program cannot read the file, unless it has root's rights.
function hasRaisedPrivileges(): boolean {
  try {
    const words = new BigUint64Array(Uint8Array.from(readFileSync('/proc/self/auxv')).buffer);
    return words.some((word, i) => i % 2 === 0 && word === AT_SECURE && words[i + 1] !== 0n);
  } catch {
    return true;
  }
}

/**
 * The folder that the environment names. Undefined if it names none, and where the variable does not
 * count: in a program with raised privileges, and in one that was given a grant, where it says which
 * folder has that on record.
 * @throws ERR_INVALID_OPTION
 */
export function stateDirVariable(): string | undefined {
  const { [STATE_DIR_VARIABLE]: path, NUMALIGN_PRELOAD_PID } = process.env;
  if (!path || NUMALIGN_PRELOAD_PID === '' || hasRaisedPrivileges()) return undefined;
  return path.startsWith('/') ? resolve(path) : invalidOption(STATE_DIR_VARIABLE, path, 'an absolute path');
}

/** @throws ERR_INVALID_OPTION */
export const defaultStateDir = (): string => stateDirVariable() ?? MACHINE_STATE_DIR;
