import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Manager, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { GI, machineOf } from '../support/memory-machine.js';
import { move, release } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';
// @ts-expect-error without declarations
import { shimEnvironment } from '../torture/shim.mjs';

const SIMULATE = 'package:2 [numa(memory=8GiB)] core:4 pu:1';
const SECOND = { cpus: '4-5', node: 1 };
const MOVER = {
  cpu: 2,
  memory: '2Gi',
  name: 'mover',
  policy: 'single-numa-node',
  movable: { notice: 10_000 },
} as const;
// Of some hundred milliseconds each.
const STRIDE = budget(1, 6);

interface Failpoint {
  readonly nth: number;
  readonly when: 'before' | 'after';
}

async function open(stateDir: string): Promise<Manager> {
  const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
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

const reservedOf = (manager: Manager) => manager.memory().map(({ reserved }) => reserved / GI);

/** What a state must be whichever step somebody died at, once the next transaction has looked at it. */
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
  // All the rest is to be had.
  const rest = await manager.acquire({ cpu: isMoverThere ? 5 : 7 });
  await rest.release();
}

/** A process that is ready to be killed in the middle of a move; undefined where it has died before. */
type Prepare = (fail?: Failpoint) => Promise<Scene>;

interface Scene {
  readonly stateDir: string;
  readonly manager: Manager;
  readonly agent: Agent;
  /** Answers once the move is done, or is not. */
  move(): Promise<unknown>;
}

/** Kills a process at every step of its move, one after the other. Answers how many times. */
async function killAtEachStep(
  when: Failpoint['when'],
  prepare: Prepare,
  check: (manager: Manager) => Promise<void>,
): Promise<number> {
  const whole = await prepare();
  // Steps that fail are in no trace: some of these are before the move.
  const first = stepsIn(whole.stateDir);
  await whole.move();
  let deaths = 0;
  for (let nth = first; ; nth += STRIDE) {
    const scene = await prepare({ nth, when }).catch(() => undefined);
    if (!scene) continue;
    await scene.move().catch(() => {});
    const isDead = await scene.agent.tell('mask').then(
      () => false,
      () => true,
    );
    if (isDead) deaths++;
    else await scene.agent.kill();
    await check(scene.manager);
    if (!isDead) return deaths;
  }
}

describe.each(['before', 'after'] as const)('a move with a process that dies %s a step', (when) => {
  it('is done or undone by others where it is the one that asks', async () => {
    const prepare: Prepare = async (fail) => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      const { uid } = await manager.acquire({ ...MOVER, owner: 'persistent' });
      const agent = await agentIn(stateDir, fail);
      const ask = () => agent.tell('move', { uid, to: SECOND, for: 'asker' });
      return { stateDir, manager, agent, move: ask };
    };
    const deaths = await killAtEachStep(when, prepare, async (manager) => {
      await expectOnePlace(manager, true);
      await manager.release(manager.grants()[0]!.uid);
    });
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });

  it('is done or undone by others where it is the owner of the grant', async () => {
    const prepare: Prepare = async (fail) => {
      const stateDir = makeStateDir();
      const manager = await open(stateDir);
      const agent = await agentIn(stateDir, fail);
      const { uid } = await agent.tell('acquire', MOVER);
      return { stateDir, manager, agent, move: () => move(manager, uid, SECOND, { for: 'asker' }) };
    };
    const deaths = await killAtEachStep(when, prepare, (manager) => expectOnePlace(manager, false));
    expect(deaths).toBeGreaterThan(10 / STRIDE);
  });
});
