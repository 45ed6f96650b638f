// Managers with state folders of their own: closed and removed after the tests of a file. What a
// failed test has not released is released after it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach } from 'node:test';
import { openManager } from '../../../dist/index.js';

const folder = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
const managers = [];
let folders = 0;
afterEach(async () => {
  for (const manager of managers) {
    const own = manager.grants().filter(({ owner }) => owner.pid === process.pid);
    for (const { uid } of own) await manager.release(uid);
  }
});
after(() => {
  for (const manager of managers) manager.close();
  rmSync(folder, { recursive: true });
});

export const newStateDir = () => join(folder, `state-${folders++}`);

/**
 * The test process is no shared member, and nothing is repaired behind its back: its threads are
 * exactly where they are pinned.
 */
export async function open(options = {}) {
  const alone = { sharedMember: false, cpuManagerReconcilePeriod: 0 };
  const manager = await openManager({ stateDir: newStateDir(), ...alone, ...options });
  managers.push(manager);
  return manager;
}
