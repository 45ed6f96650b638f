// A folder for files that need not be on a disk: where there is a memory file system, thousands of commits take seconds.
import { accessSync, constants, mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

function base() {
  try {
    accessSync('/dev/shm', constants.W_OK);
    return '/dev/shm';
  } catch {
    return tmpdir();
  }
}

/** A new folder, its path without links. */
export const scratchFolder = (name) => mkdtempSync(join(realpathSync(base()), `numalign-${name}-`));
