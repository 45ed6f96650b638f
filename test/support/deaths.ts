// Processes that die at a step on the state folder, one after the other at each of them.
import { randomInt } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Manager } from '../../lib/index.js';
// @ts-expect-error without declarations
import { shimEnvironment } from '../torture/shim.mjs';
import { Agent } from './agent.js';

export interface Failpoint {
  readonly nth: number;
  readonly when: 'before' | 'after';
}

export interface Scene {
  readonly stateDir: string;
  readonly manager: Manager;
  /** The process that dies: by {@link mortalAgent}. */
  readonly agent: Agent;
  /** Returns once its operation is done, or is not. */
  act(): Promise<unknown>;
}

/** A process that dies at a step; without a step it records all of them. */
export async function mortalAgent(stateDir: string, simulate: string, fail?: Failpoint): Promise<Agent> {
  const folder = realpathSync(stateDir);
  const trace = fail ? undefined : join(stateDir, '..', 'steps');
  const variables = shimEnvironment({ folder, fail, trace });
  const agent = new Agent(['env', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)]);
  // It may die before it gets a command.
  agent.process.stdin!.on('error', () => {});
  await agent.tell('open', { stateDir, simulate });
  return agent;
}

const stepsIn = (stateDir: string) =>
  readFileSync(join(stateDir, '..', 'steps'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && JSON.parse(line).op !== 'close').length;

/** Kills a process at every `stride`th step of its operation. Returns how many times. */
export async function killAtEachStep(
  { when, stride }: { readonly when: Failpoint['when']; readonly stride: number },
  prepare: (fail?: Failpoint) => Promise<Scene>,
  check: (manager: Manager) => Promise<void>,
): Promise<number> {
  const whole = await prepare();
  // Steps that fail are in no trace: some of them come before the operation.
  const first = stepsIn(whole.stateDir);
  await whole.act();
  let deaths = 0;
  // Other steps in each run.
  for (let nth = first + randomInt(stride); ; nth += stride) {
    // It may have died before.
    const scene = await prepare({ nth, when }).catch(() => undefined);
    if (!scene) continue;
    await scene.act().catch(() => {});
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
