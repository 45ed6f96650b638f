// What the reaper starts, of all the command only this: gives back the CPUs of what has ended.
import { existsSync } from 'node:fs';
import { openManager } from 'numalign';

/** In this folder. Its streams are closed: the next process that opens it reports what is wrong. */
export async function reap(stateDir: string): Promise<void> {
  try {
    // Opening a manager takes grants back, and makes a folder.
    if (existsSync(stateDir))
      (await openManager({ stateDir, besideKubelet: true, sharedMember: false })).close();
  } catch {
    process.exitCode = 1;
  }
}
