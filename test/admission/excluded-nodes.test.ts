// needs: nothing
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Manager, openManager, type PodSpec } from '../../lib/index.js';
import { machineAt } from '../support/changing-machine.js';
import { errorOf } from '../support/error-of.js';
import { GI } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const POD: PodSpec = { uid: 'pod', containers: [guaranteed('main', { cpu: 1 })] };
const TERMS = { movable: { exclude: [1, 2] } };

async function openAt(stateDir: string, memory: readonly [number, number | null]): Promise<Manager> {
  const manager = await openManager({ topology: await machineAt({ memory }), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

describe('a NUMA node to be excluded that the machine does not have', () => {
  it.each<[string, (manager: Manager) => Promise<unknown>]>([
    ['acquire', (manager) => manager.acquire({ cpu: 1, ...TERMS })],
    ['admit', (manager) => manager.admit(POD, TERMS)],
    ['admitAll', (manager) => manager.admitAll([POD], TERMS)],
    ['plan', async (manager) => manager.plan(POD, TERMS)],
  ])('is refused by %s', async (_, ask) => {
    const manager = await simulate('numa:2 core:2 pu:1');
    const error = await errorOf(() => ask(manager));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'movable.exclude', value: 2, valid: 'NUMA nodes of the machine, which are 0, 1' },
    });
    expect(manager.grants()).toEqual([]);
  });

  it('is no reason to refuse a pod that was admitted before the node went away', async () => {
    const stateDir = makeStateDir();
    const owner = 'persistent';
    const movable = { exclude: [1] };
    await (await openAt(stateDir, [8 * GI, 8 * GI])).admit(POD, { owner, movable });
    const manager = await openAt(stateDir, [8 * GI, null]);
    expect(await manager.admit(POD, { owner, movable })).toMatchObject({ alreadyAdmitted: true });
  });
});
