// The machine after a reboot, with the state folder of the boot before (until-reboot.test.mjs) on a
// disk that was kept. Run by node --test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openManager } from '../../../dist/index.js';
import * as kernel from './kernel-view.mjs';

const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const stateDir = '/disk/state';
const look = () =>
  JSON.parse(execFileSync(process.execPath, [CLI, 'status', '--output', 'json', '--state-dir', stateDir]));

test('it is another boot', () => {
  assert.notEqual(kernel.read('/disk/boot-id'), kernel.read('/proc/sys/kernel/random/boot_id'));
});

test('inspection reports the earlier boot, and changes nothing', () => {
  const found = look();
  assert.equal(found.isOfEarlierBoot, true);
  assert.deepEqual([found.grants, found.lapsed.map(({ name }) => name)], [[], ['kept']]);
  assert.deepEqual(look(), found);
});

test('the state is archived, persistent grants are reported, and none is granted again by itself', async () => {
  const manager = await openManager({ stateDir, reservedSystemCPUs: '0' });
  const [archived, ...more] = manager.warnings;
  assert.deepEqual([archived.code, more], ['STATE_ARCHIVED', []]);
  const [kept, ...others] = archived.lapsed;
  assert.deepEqual(
    [kept.name, kept.cpus.size, kept.memory[0].bytes, others.length],
    ['kept', 2, 64 * 2 ** 20, 0],
  );
  assert.ok(existsSync(join(stateDir, archived.file)));
  assert.deepEqual(manager.grants(), []);
  assert.deepEqual(manager.sharedPool().toArray(), kernel.online());
  // No mask and no cgroup of the earlier boot either.
  for (const mask of kernel.masks()) assert.deepEqual(mask, kernel.online());
  const grant = await manager.acquire({ cpu: 2, memory: '64Mi', policy: 'single-numa-node' });
  assert.notEqual(grant.uid, kept.uid);
  await grant.release();
  manager.close();
  const again = await openManager({ stateDir });
  assert.deepEqual(again.warnings, []);
  again.close();
});
