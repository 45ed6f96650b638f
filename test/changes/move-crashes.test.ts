// needs: agents
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Manager, openManager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { type Failpoint, killAtEachStep, mortalAgent, type Scene } from '../support/deaths.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { move, release } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';

const SIMULATE = 'package:2 [numa(memory=8GiB)] core:4 pu:1';
const SECOND = { cpus: '4-5', node: 1 };
const MOVER = {
  cpu: 2,
  memory: '2Gi',
  name: 'mover',
  policy: 'single-numa-node',
  movable: { notice: 10_000 },
} as const;
// Some hundred milliseconds each.
const STRIDE = budget({ all: 1, usual: 20 });

async function open(stateDir: string): Promise<Manager> {
  const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
  const manager = await openManager({ topology, stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

const reservedOf = (manager: Manager) => manager.memory().map(({ reserved }) => reserved / GI);

/** What a state must be after a death at any step, once the next transaction has checked it. */
async function expectOnePlace(manager: Manager, isMoverThere: boolean): Promise<void> {
  await release(manager, 'asker');
  const grants = manager.grants();
  expect(grants.map(({ name }) => name)).toEqual(isMoverThere ? ['mover'] : []);
  const [mover] = grants;
  if (mover) {
    expect(mover.upcoming).toBeNull();
    const isFirst = String(mover.cpus) === '0-1';
    expect(isFirst || String(mover.cpus) === '4-5').toBe(true);
    expect(reservedOf(manager)).toEqual(isFirst ? [2, 0] : [0, 2]);
  } else expect(reservedOf(manager)).toEqual([0, 0]);
  // All the rest is free.
  const rest = await manager.acquire({ cpu: isMoverThere ? 5 : 7 });
  await rest.release();
}

describe.each(['before', 'after'] as const)('a move with a process that dies %s a step', (when) => {
  it('is done or undone by others if it is the requester', async () => {
    const prepare = async (fail?: Failpoint): Promise<Scene> => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      const { uid } = await manager.acquire({ ...MOVER, owner: 'persistent' });
      const agent = await mortalAgent(stateDir, SIMULATE, fail);
      const ask = () => agent.tell('move', { uid, to: SECOND, for: 'asker' });
      return { stateDir, manager, agent, act: ask };
    };
    const deaths = await killAtEachStep({ when, stride: STRIDE }, prepare, async (manager) => {
      await expectOnePlace(manager, true);
      await manager.release(manager.grants()[0]!.uid);
    });
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });

  it('is done or undone by others if it owns the grant', async () => {
    const prepare = async (fail?: Failpoint): Promise<Scene> => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      const agent = await mortalAgent(stateDir, SIMULATE, fail);
      const { uid } = await agent.tell('acquire', MOVER);
      return { stateDir, manager, agent, act: () => move(manager, uid, SECOND, { for: 'asker' }) };
    };
    const deaths = await killAtEachStep({ when, stride: STRIDE }, prepare, (manager) =>
      expectOnePlace(manager, false),
    );
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });
});
