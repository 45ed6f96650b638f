// needs: agents
// Changes between two states.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { difference } from '../../lib/state/difference.js';
import { decodeCheckpoint } from '../../lib/state/format/journal.js';
import { makeStateDir } from '../support/state-dir.js';

it('has the pods that were added, removed and changed, and no others', async () => {
  const stateDir = makeStateDir();
  const manager = await openManager({ topology: await discover({ synthetic: 'core:8 pu:1' }), stateDir });
  const recorded = () => decodeCheckpoint(readFileSync(join(stateDir, 'state.json'))).assignments;
  const grants = [];
  for (const name of ['stays', 'leaves', 'grows']) grants.push(await manager.acquire({ cpu: 1, name }));
  const before = recorded();
  await grants[1]!.release();
  await grants[2]!.resize({ cpu: 2 });
  await manager.acquire({ cpu: 1, name: 'comes' });
  const after = recorded();
  manager.close();
  const namesOf = (pods: readonly { name: string }[]) => pods.map(({ name }) => name);
  const { added, removed, changed, haveSettingsChanged } = difference(before, after);
  expect([namesOf(added), namesOf(removed)]).toEqual([['comes'], ['leaves']]);
  expect(namesOf(changed.map((each) => each.after))).toEqual(['grows']);
  expect(haveSettingsChanged).toBe(false);
  expect(difference(after, after)).toMatchObject({ added: [], removed: [], changed: [] });
});
