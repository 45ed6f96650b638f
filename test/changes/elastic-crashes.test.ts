// needs: agents
// A process that dies at any step while a grant shrinks for another, or grows into CPUs that others
// give up.
import { describe, expect, it } from 'vitest';
import { CpuSet, type Manager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { changed } from '../support/changed.js';
import { sizesOf } from '../support/changing-grants.js';
import { type Failpoint, killAtEachStep, mortalAgent, type Scene } from '../support/deaths.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const SIMULATE = 'package:2 core:4 pu:1';
const ELASTIC = { cpu: { min: 2, max: 8 }, name: 'elastic' };
// Some hundred milliseconds each.
const STRIDE = budget({ all: 1, usual: 20 });

const open = (stateDir: string) => simulate(SIMULATE, { stateDir });

function expectDisjoint(manager: Manager): void {
  const all = manager.grants();
  const cpus = all.reduce((sum, grant) => sum.union(grant.cpus), CpuSet.EMPTY);
  expect(cpus.size).toBe(all.reduce((sum, grant) => sum + grant.cpus.size, 0));
  expect(manager.sharedPool().isEmpty).toBe(false);
}

describe.each(['before', 'after'] as const)('a process that dies %s a step', (when) => {
  it('leaves all CPUs to the grant that it has asked for some', async () => {
    const prepare = async (fail?: Failpoint): Promise<Scene> => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      await manager.acquire(ELASTIC);
      const agent = await mortalAgent(stateDir, SIMULATE, fail);
      return { stateDir, manager, agent, act: () => agent.tell('acquire', { cpu: 4, name: 'other' }) };
    };
    const deaths = await killAtEachStep({ when, stride: STRIDE }, prepare, async (manager) => {
      await changed(manager, () => {
        expectDisjoint(manager);
        return manager.grants().length === 1 && sizesOf(manager).elastic === 7;
      });
      expect(sizesOf(manager)).toEqual({ elastic: 7 });
      await manager.release(manager.grants()[0]!.uid);
    });
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });

  it('leaves its CPUs to the requester', async () => {
    const prepare = async (fail?: Failpoint): Promise<Scene> => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      const agent = await mortalAgent(stateDir, SIMULATE, fail);
      await agent.tell('acquire', ELASTIC);
      return { stateDir, manager, agent, act: () => manager.acquire({ cpu: 4, name: 'other' }) };
    };
    const deaths = await killAtEachStep({ when, stride: STRIDE }, prepare, async (manager) => {
      await changed(manager, () => {
        expectDisjoint(manager);
        return manager.grants().length === 1;
      });
      expect(sizesOf(manager)).toEqual({ other: 4 });
      await manager.release(manager.grants()[0]!.uid);
      expect(manager.sharedPool().size).toBe(8);
    });
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });
});
