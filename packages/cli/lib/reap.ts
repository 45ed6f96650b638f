// What the reaper starts, of all the command only this: gives back the CPUs of what has ended. A command
// that was started before an upgrade knows it by its path.
import { existsSync } from 'node:fs';
import { refusalHere } from './library.js';

const stateDir = process.argv[2]!;

async function reap(): Promise<void> {
  // Opening a manager takes grants back, and makes a folder.
  if (refusalHere() || !existsSync(stateDir)) return;
  const { openManager } = await import('numalign');
  (await openManager({ stateDir, besideKubelet: true, sharedMember: false })).close();
}

// Its streams are closed: the next process that opens the folder reports what is wrong.
void reap().catch(() => {
  process.exitCode = 1;
});
