// The health of `numalign agent`: whether its state can be read and changed, and what became of the last round of reconciling.
import { accessSync, constants, statfsSync } from 'node:fs';
import { thrownText } from '../check-options.js';
import type { Manager } from '../manager.js';

/** What is wrong, in plain words; nothing where all is well. `lastFailure`: of reconciling. */
export function ailments(manager: Manager, lastFailure: unknown): string[] {
  const ailments: string[] = [];
  try {
    const { refusal } = manager;
    if (refusal) ailments.push(`nothing is granted: ${refusal.message}`);
  } catch (error) {
    ailments.push(`the state cannot be read: ${thrownText(error)}`);
  }
  try {
    checkWritable(manager.stateDir);
  } catch (error) {
    ailments.push(`the state folder cannot be written: ${thrownText(error)}`);
  }
  if (lastFailure !== undefined) ailments.push(`reconciling has failed: ${thrownText(lastFailure)}`);
  return ailments;
}

// access(2) knows of file systems that are read-only, statfs(2) of full ones: nothing is written to find out.
function checkWritable(folder: string): void {
  accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  const { blocks, bavail } = statfsSync(folder);
  // Some file systems have no number of blocks.
  if (blocks > 0 && bavail === 0) throw new Error(`no space is left on the file system of ${folder}`);
}
