// A folder for files that need no disk: on a memory file system thousands of commits take seconds.
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

/** A new folder, its path without links. `on`: a folder of the required file system. */
export const scratchFolder = (name, on = base()) => mkdtempSync(join(realpathSync(on), `numalign-${name}-`));
