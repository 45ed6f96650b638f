// needs: agents
// Calls that a program awaits one after the other, on a state that no device keeps waiting.
import { existsSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { turnIfDue } from '../../lib/base/steps.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';

const MEMORY = '/dev/shm';

async function open(stateDir?: string): Promise<Manager> {
  const topology = await discover({ synthetic: 'core:4 pu:2' });
  const manager = await openManager({ topology, ...(stateDir && { stateDir }) });
  onTestFinished(() => manager.close());
  return manager;
}

/** Repeats a call until a timer of 50 ms fires. Returns false if it has not for 2 s. */
async function letsTimersFire(call: () => Promise<unknown>): Promise<boolean> {
  let hasFired = false;
  const timer = setTimeout(() => {
    hasFired = true;
  }, 50);
  for (const begin = performance.now(); !hasFired && performance.now() - begin < 2000; ) await call();
  clearTimeout(timer);
  return hasFired;
}

const CALLS: Record<string, (manager: Manager) => Promise<unknown>> = {
  'acquire and release': async (manager) => (await manager.acquire({ cpu: 1 })).release(),
  use: (manager) => manager.use({ cpu: 1 }, () => {}),
  'a refused acquire': (manager) => manager.acquire({ cpu: 100 }).catch(() => {}),
  'an aborted acquire': (manager) => manager.acquire({ cpu: 1, signal: AbortSignal.abort() }).catch(() => {}),
  defragment: (manager) => manager.defragment({ dryRun: true }),
  reconcile: (manager) => manager.reconcile(),
  openManager: async ({ topology, stateDir }) => (await openManager({ topology, stateDir })).close(),
  'openManager, to read': async ({ topology, stateDir }) =>
    (await openManager({ topology, stateDir, readOnly: true })).close(),
};

it.runIf(existsSync(MEMORY)).each(Object.keys(CALLS))('a loop of %s lets timers fire', async (name) => {
  const manager = await open(makeStateDir(MEMORY));
  expect(await letsTimersFire(() => CALLS[name]!(manager))).toBe(true);
});

it('a loop of acquire and release in memory lets timers fire', async () => {
  const manager = await open();
  expect(await letsTimersFire(async () => (await manager.acquire({ cpu: 1 })).release())).toBe(true);
});

it('the first call in a turn of the event loop never waits for another turn', async () => {
  for (let i = 0; i < 3; i++) {
    await turn();
    const begin = performance.now();
    expect(turnIfDue()).toBeUndefined();
    while (performance.now() - begin < 10);
    const wait = turnIfDue();
    expect(wait).toBeInstanceOf(Promise);
    await wait;
  }
});
