// needs: folders
// The file of this process's own claims, to which each commit appends.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';

it('is written whole again before it has grown far beyond what it says', async () => {
  const topology = await discover({ synthetic: 'core:4 pu:1' });
  const manager = await openManager({ topology, stateDir: makeStateDir('/dev/shm') });
  onTestFinished(() => manager.close());
  const sizes: number[] = [];
  for (let grants = 0; grants < 60; grants++) {
    const grant = await manager.acquire({ cpu: 1, name: 'x'.repeat(200) });
    const owners = join(manager.stateDir, 'owners');
    sizes.push(...readdirSync(owners).map((name) => statSync(join(owners, name)).size));
    await grant.release();
  }
  expect(sizes).toHaveLength(60);
  expect(sizes.reduce((sum, size, i) => sum + Math.max(0, size - (sizes[i - 1] ?? 0)), 0)).toBeGreaterThan(
    30_000,
  );
  expect(Math.max(...sizes)).toBeLessThan(20_000);
});
