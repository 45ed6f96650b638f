// A process that dies at any step while a grant shrinks for another, or grows by what others give up.
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { seenState } from '../support/seen-state.js';
import { makeStateDir } from '../support/state-dir.js';
// @ts-expect-error without declarations
import { shimEnvironment } from '../torture/shim.mjs';

const SIMULATE = 'package:2 core:4 pu:1';
const ELASTIC = { cpu: { min: 2, max: 8 }, name: 'elastic' };
// Of some hundred milliseconds each.
const STRIDE = budget(1, 7);

interface Failpoint {
  readonly nth: number;
  readonly when: 'before' | 'after';
}

async function open(stateDir: string): Promise<Manager> {
  const topology = await discover({ synthetic: SIMULATE });
  const manager = await openManager({ topology, stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

/** A process that dies at a step on the state folder; without one it writes down all of them. */
async function agentIn(stateDir: string, fail?: Failpoint): Promise<Agent> {
  const folder = realpathSync(stateDir);
  const trace = fail ? undefined : join(stateDir, '..', 'steps');
  const variables = shimEnvironment({ folder, fail, trace });
  const agent = new Agent(['env', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)]);
  // It may have died before it is told something.
  agent.process.stdin!.on('error', () => {});
  await agent.tell('open', { stateDir, simulate: SIMULATE });
  return agent;
}

const stepsIn = (stateDir: string) =>
  readFileSync(join(stateDir, '..', 'steps'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && JSON.parse(line).op !== 'close').length;

const sizesOf = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus }) => [name, cpus.size]));

function expectDisjoint(manager: Manager): void {
  const all = manager.grants();
  const cpus = all.reduce((sum, grant) => sum.union(grant.cpus), CpuSet.EMPTY);
  expect(cpus.size).toBe(all.reduce((sum, grant) => sum + grant.cpus.size, 0));
  expect(manager.sharedPool().isEmpty).toBe(false);
}

interface Scene {
  readonly stateDir: string;
  readonly manager: Manager;
  /** Whose death it is about. */
  readonly agent: Agent;
  act(): Promise<unknown>;
}

/** A process dies at each step of what it does, one after the other. Answers how many times. */
async function killAtEachStep(
  when: Failpoint['when'],
  prepare: (fail?: Failpoint) => Promise<Scene>,
  check: (scene: Scene) => Promise<void>,
): Promise<number> {
  const whole = await prepare();
  // Steps that fail are in no trace: some of these are before the request.
  const first = stepsIn(whole.stateDir);
  await whole.act();
  let deaths = 0;
  for (let nth = first; ; nth += STRIDE) {
    const scene = await prepare({ nth, when }).catch(() => undefined);
    if (!scene) continue;
    await scene.act().catch(() => {});
    const isDead = await scene.agent.tell('mask').then(
      () => false,
      () => true,
    );
    if (isDead) deaths++;
    else await scene.agent.kill();
    await check(scene);
    if (!isDead) return deaths;
  }
}

describe.each(['before', 'after'] as const)('a process that dies %s a step', (when) => {
  it('leaves all CPUs to the grant again that it has asked for some', async () => {
    const prepare = async (fail?: Failpoint): Promise<Scene> => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      await manager.acquire(ELASTIC);
      const agent = await agentIn(stateDir, fail);
      return { stateDir, manager, agent, act: () => agent.tell('acquire', { cpu: 4, name: 'other' }) };
    };
    const deaths = await killAtEachStep(when, prepare, async ({ manager }) => {
      await seenState(manager, () => {
        expectDisjoint(manager);
        return manager.grants().length === 1 && sizesOf(manager).elastic === 7;
      });
      expect(sizesOf(manager)).toEqual({ elastic: 7 });
      await manager.release(manager.grants()[0]!.uid);
    });
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });

  it('leaves its CPUs to who asks its grant for some', async () => {
    const prepare = async (fail?: Failpoint): Promise<Scene> => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      const agent = await agentIn(stateDir, fail);
      await agent.tell('acquire', ELASTIC);
      return { stateDir, manager, agent, act: () => manager.acquire({ cpu: 4, name: 'other' }) };
    };
    const deaths = await killAtEachStep(when, prepare, async ({ manager }) => {
      await seenState(manager, () => {
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
