// Checks that a folder can be written, without writing to it.
import { accessSync, constants, statfsSync } from 'node:fs';

/**
 * Checks that a folder can be written, without writing to it. access(2) detects a read-only file
 * system, statfs(2) a full one.
 * @throws if the folder cannot be written
 */
export function checkWritable(folder: string): void {
  accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  const { blocks, bavail } = statfsSync(folder);
  // Some file systems report no number of blocks.
  if (blocks > 0 && bavail === 0) throw new Error(`no space is left on the file system of ${folder}`);
}
