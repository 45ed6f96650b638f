// needs: folders
// The options of openManager and pin are those of the call, though its code is loaded after it.
import { expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';

it('options that change after the call do not count', async () => {
  const topology = await discover({ synthetic: 'core:4 pu:1' });
  const options = { topology, stateDir: makeStateDir() };
  const { stateDir } = options;
  const opening = openManager(options);
  options.stateDir = '/nowhere/at/all';
  const manager = await opening;
  expect(manager.stateDir).toBe(stateDir);
  await manager.close();
});
