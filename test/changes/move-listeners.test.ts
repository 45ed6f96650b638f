// needs: agents
import { describe, expect, it, onTestFinished } from 'vitest';
import { dropListeners, type MoveEnd } from '../../lib/changes/move-event.js';
import { type Grant, type Manager, type MoveEvent, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { hostOf, move } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';

interface Scene {
  readonly manager: Manager;
  readonly grant: Grant;
  readonly begin: () => Promise<unknown>;
}

/** A grant on CPUs 0-1 that is asked to go to 4-5. */
async function scene(movable: object | boolean = true): Promise<Scene> {
  const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
  const manager = await openManager({ topology, stateDir: makeStateDir() });
  onTestFinished(() => manager.close());
  const grant = await manager.acquire({ cpu: 2, policy: 'single-numa-node', movable });
  return {
    manager,
    grant,
    begin: () => move(manager, grant.uid, { cpus: '4-5', node: 1 }, { for: 'asker' }),
  };
}

function withResolver() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

describe('a listener of a move', () => {
  it('is awaited if it is asynchronous', async () => {
    const { grant, begin } = await scene();
    const [called, answer] = [withResolver(), withResolver()];
    grant.on('move', async () => {
      called.resolve();
      await answer.promise;
    });
    const moving = begin();
    await called.promise;
    expect([String(grant.cpus), String(grant.upcoming)]).toEqual(['0-1', '4-5']);
    answer.resolve();
    await moving;
    expect(String(grant.cpus)).toBe('4-5');
  });

  it('may wait for more while it is awaited', async () => {
    const { grant, begin } = await scene();
    grant.on('move', async (event) => {
      await Promise.resolve();
      event.waitUntil(new Promise((_, reject) => setImmediate(reject, new Error('not now'))));
    });
    expect(await errorOf(begin)).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'refused' } });
    expect(String(grant.cpus)).toBe('0-1');
  });

  it('gets an error if it adds a promise after its answer', async () => {
    const { grant, begin } = await scene();
    let event!: MoveEvent;
    grant.on('move', (given) => {
      event = given;
    });
    await begin();
    const error = await errorOf(() => event.waitUntil(Promise.resolve()));
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARGUMENT', details: { value: grant.uid } });
  });

  it.each([
    ['the notice passes', 'no-answer', { notice: 500 }, () => {}],
    [
      'another one refuses',
      'refused',
      true,
      () => {
        throw new Error('not now');
      },
    ],
  ])('learns from the signal that it waits in vain: %s', async (_, reason, movable, other) => {
    const { grant, begin } = await scene(movable);
    const abort = new Promise<AbortSignal>((resolve) => {
      grant.on('move', ({ signal, waitUntil }) => {
        signal.addEventListener('abort', () => resolve(signal));
        waitUntil(new Promise(() => {}));
      });
    });
    grant.on('move', other);
    await errorOf(begin);
    expect((await abort).reason).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason } });
  });

  it('does no harm if its promise is rejected too late', async () => {
    const { grant, begin } = await scene({ notice: 50 });
    let reject = (_: Error) => {};
    grant.on('move', ({ waitUntil }) => waitUntil(new Promise((_, no) => (reject = no))));
    expect(await errorOf(begin)).toMatchObject({ details: { reason: 'no-answer' } });
    reject(new Error('not now'));
    // By then an unhandled rejection would have been reported.
    await new Promise(setImmediate);
    expect(String(grant.cpus)).toBe('0-1');
  });

  it('learns the end of the move even if its grant has ended before', async () => {
    const { manager, grant } = await scene();
    const called = withResolver();
    grant.on('move', ({ waitUntil }) => {
      waitUntil(new Promise(() => {}));
      called.resolve();
    });
    const ends: MoveEnd[] = [];
    grant.on('moveEnd', (end) => ends.push(end));
    const abort = new AbortController();
    const request = { for: 'asker', signal: abort.signal };
    const moving = errorOf(() => move(manager, grant.uid, { cpus: '4-5', node: 1 }, request));
    await called.promise;
    // As a release does, which numalign may notice before or after.
    dropListeners(hostOf(manager).ledger, grant.uid);
    abort.abort();
    await moving;
    const end = { isMoved: false, error: { details: { reason: 'called-off' } } };
    await expect.poll(() => ends).toMatchObject([end]);
  });

  it('is called once if it listens with once', async () => {
    const { grant, begin } = await scene();
    let calls = 0;
    grant.once('move', () => {
      if (++calls === 1) throw new Error('not now');
    });
    await errorOf(begin);
    await begin();
    expect([calls, String(grant.cpus)]).toEqual([1, '4-5']);
  });
});
