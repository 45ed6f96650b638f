// Stopping a process so that it blocks no other.
import { native } from '../../lib/base/native.js';
// @ts-expect-error without declarations
import { standsStill } from '../torture/processes.mjs';
import type { Agent } from './agent.js';

const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

/**
 * Stops an agent that does not hold the lock of the state: it may be in the middle of a commit that
 * others see already, or about to check its turn.
 */
export async function stopWithoutLock({ process: { pid } }: Agent, stateDir: string): Promise<void> {
  const folder = native.Folder.open(stateDir, false, 0o700, -1);
  for (;;) {
    process.kill(pid!, 'SIGSTOP');
    while (!standsStill(pid)) await soon();
    const lock = folder.tryLock('lock', 'a test');
    lock?.release();
    if (lock) break;
    process.kill(pid!, 'SIGCONT');
    await soon();
  }
  folder.close();
}
