// needs: folders
// The file of this process's own claims, to which each commit appends.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { OwnerLocks } from '../../lib/state/files/owner-locks.js';
import { makeStateDir } from '../support/state-dir.js';

async function open() {
  const topology = await discover({ synthetic: 'core:4 pu:1' });
  const manager = await openManager({ topology, stateDir: makeStateDir('/dev/shm') });
  onTestFinished(() => manager.close());
  return { manager, owners: join(manager.stateDir, 'owners') };
}

it('has a seal that shows the generation since which the state has its grants', async () => {
  const { manager, owners } = await open();
  const folder = native.Folder.open(owners, false, 0o700, -1);
  const since = () => new OwnerLocks(folder, manager.stateDir).since(readdirSync(owners)[0]!);
  await manager.acquire({ cpu: 1 });
  expect(since()).toBe(manager.generation());
  const second = await manager.acquire({ cpu: 1 });
  const generation = manager.generation();
  expect(since()).toBe(generation);
  await second.release();
  expect(since()).toBeGreaterThanOrEqual(generation);
});

it('is written whole again before it has grown far beyond what it says', async () => {
  const { manager, owners } = await open();
  const sizes: number[] = [];
  for (let grants = 0; grants < 60; grants++) {
    const grant = await manager.acquire({ cpu: 1, name: 'x'.repeat(200) });
    sizes.push(...readdirSync(owners).map((name) => statSync(join(owners, name)).size));
    await grant.release();
  }
  expect(sizes).toHaveLength(60);
  expect(sizes.reduce((sum, size, i) => sum + Math.max(0, size - (sizes[i - 1] ?? 0)), 0)).toBeGreaterThan(
    30_000,
  );
  expect(Math.max(...sizes)).toBeLessThan(20_000);
});
