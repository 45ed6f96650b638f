// needs: agents
// Listeners of the user's that throw: each is an uncaught exception, and nothing else.
import { fork } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { errorMonitor, once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DIAGNOSTICS_CHANNELS } from '../../lib/entries/diagnostics.js';
import { type Grant, type Manager, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { move } from '../support/moves.mjs';
import { makeNewer } from '../support/newer-state.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import { uncaught } from '../support/uncaught.js';

const MACHINE = 'package:2 [numa(memory=8GiB)] core:4 pu:1';
const SINGLE = { policy: 'single-numa-node' } as const;

const bug = (name: string) => () => {
  throw new Error(`bug in ${name}`);
};

describe('a listener that throws', () => {
  it.each<[event: string, cause: (manager: Manager, grant: Grant) => unknown]>([
    ['change', (manager) => manager.acquire({ cpu: 1 })],
    ['error', ({ stateDir }) => makeNewer(stateDir)],
  ])('of %s is reported, and the next one is called', async (event, cause) => {
    const seen = uncaught();
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 1 });
    if (event === 'error') manager.on('change', () => {});
    manager.on(event as 'change', bug('the first'));
    const called = new Promise((resolve) => manager.on(event as 'change', resolve));
    await cause(manager, grant);
    await called;
    await expect.poll(() => seen[0]).toBe('bug in the first');
  });

  it('of a move refuses it, and the others hear of it', async () => {
    const seen = uncaught();
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 2, movable: true });
    const heard: string[] = [];
    grant.on('move', bug('move')).on('move', () => heard.push('move'));
    grant.on('moveEnd', bug('moveEnd')).on('moveEnd', ({ error }) => heard.push(String(error!.cause)));
    const error = await errorOf(() => move(manager, grant.uid, { cpus: '4-5', node: 1 }, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'refused' } });
    expect(heard).toEqual(['move', 'Error: bug in move']);
    await expect.poll(() => seen).toEqual(['bug in moveEnd']);
  });

  it('of a resize is reported, and the next one is called', async () => {
    const seen = uncaught();
    const manager = await simulate('core:4 pu:1');
    const grant = await manager.acquire({ cpu: { min: 1, max: 3 } });
    const sizes: number[] = [];
    grant.on('resize', bug('resize')).on('resize', ({ cpus }) => sizes.push(cpus.size));
    const other = await manager.acquire({ cpu: 1 });
    expect([sizes, grant.cpus.size, other.cpus.size]).toEqual([[2], 2, 1]);
    await expect.poll(() => seen).toEqual(['bug in resize']);
  });

  it('of a manager does not keep its grants from making room for other processes', async () => {
    const seen = uncaught();
    const options = { cpuManagerPolicy: 'dynamic', ...SINGLE } as const;
    const manager = await simulate(MACHINE, options);
    manager.on('change', bug('change')).on('error', bug('error'));
    const mover = await manager.acquire({ cpu: 2, movable: { notice: '1m' } });
    const rest = await manager.acquire({ cpu: 2 });
    await manager.acquire({ cpu: 2 });
    await rest.release();
    const other = new Agent();
    await other.tell('open', { stateDir: manager.stateDir, simulate: MACHINE, ...options });
    expect(await other.tell('acquire', { cpu: 3 })).toMatchObject({ cpus: '0-2' });
    expect(String(mover.cpus)).toBe('6-7');
    expect(new Set(seen)).toEqual(new Set(['bug in change']));
  });

  it('of a diagnostics channel is reported, and the next one is called', async () => {
    const seen = uncaught();
    const manager = await simulate(MACHINE);
    const outcomes: unknown[] = [];
    const [throws, notes] = [bug('admit'), (message: any) => outcomes.push(message.outcome)];
    for (const each of [throws, notes]) {
      subscribe(DIAGNOSTICS_CHANNELS.admit, each);
      onTestFinished(() => void unsubscribe(DIAGNOSTICS_CHANNELS.admit, each));
    }
    const grant = await manager.acquire({ cpu: 1 });
    expect([outcomes, grant.cpus.size]).toEqual([['admitted'], 1]);
    await expect.poll(() => seen).toEqual(['bug in admit']);
  });

  it('of a child’s end leaves the grant free to be released', async () => {
    const seen = uncaught();
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const child = grant.startChild(({ variables }) =>
      fork('-e', ['0'], { env: { ...process.env, ...variables }, execArgv: [] }).on('exit', bug('exit')),
    );
    await new Promise((resolve) => child.prependOnceListener('exit', resolve));
    await grant.release();
    await expect.poll(() => seen).toEqual(['bug in exit']);
  });
});

it('an error reaches those that only watch errors, as in any emitter', async () => {
  const manager = await simulate(MACHINE);
  manager.on('change', () => {});
  const watched = once(manager, errorMonitor);
  await manager.acquire({ cpu: 1 });
  makeNewer(manager.stateDir);
  expect((await watched)[0]).toMatchObject({ code: expect.stringMatching(/^ERR_STATE_/) });
});

it('an asynchronous listener that rejects is an unhandled rejection', async () => {
  const seen = uncaught('unhandledRejection');
  const manager = await simulate(MACHINE);
  manager.on('change', async () => bug('change')());
  const next = once(manager, 'change');
  await manager.acquire({ cpu: 1 });
  await next;
  await expect.poll(() => seen).toEqual(['bug in change']);
});
