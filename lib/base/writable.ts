// True if a folder can be written, found out without writing.
import { accessSync, constants, statfsSync } from 'node:fs';

/**
 * access(2) knows of file systems that are read-only, statfs(2) of full ones.
 * @throws where it cannot be written
 */
export function checkWritable(folder: string): void {
  accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  const { blocks, bavail } = statfsSync(folder);
  // Some file systems have no number of blocks.
  if (blocks > 0 && bavail === 0) throw new Error(`no space is left on the file system of ${folder}`);
}
