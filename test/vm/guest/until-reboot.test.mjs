// Grants that are on record when the machine goes down: see reboot.test.mjs. /disk is kept. Run by
// node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openManager } from '../../../dist/index.js';

const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));

test('a persistent grant and one of a running process are on record on the disk', async () => {
  const stateDir = '/disk/state';
  const manager = await openManager({ stateDir, reservedSystemCPUs: '0' });
  await manager.acquire({
    cpu: 2,
    memory: '64Mi',
    name: 'kept',
    owner: 'persistent',
    policy: 'single-numa-node',
  });
  const command = ['run', '--cpus', '2', '--name', 'running', '--silent', '--state-dir', stateDir];
  // It runs until the machine goes down.
  const owner = spawn(process.execPath, [CLI, ...command, '--', 'sh', '-c', 'echo here; exec sleep 100000'], {
    ...{ stdio: ['ignore', 'pipe', 'ignore'], detached: true },
  });
  await once(owner.stdout, 'data');
  owner.stdout.destroy();
  owner.unref();
  assert.deepEqual(
    manager
      .grants()
      .map(({ name, alive }) => [name, alive])
      .sort(),
    [
      ['kept', true],
      ['running', true],
    ],
  );
  manager.close();
  copyFileSync('/proc/sys/kernel/random/boot_id', '/disk/boot-id');
});
