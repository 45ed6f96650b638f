// needs: machine
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { publish, type Source, traced } from '../../lib/admission/diagnostics.js';
import { DIAGNOSTICS_CHANNELS, type DiagnosticsMessages } from '../../lib/entries/diagnostics.js';
import { openManager } from '../../lib/index.js';
import { until } from '../../packages/cli/test/numalign.js';
import { errorOf } from '../support/error-of.js';
import { makeNewer } from '../support/newer-state.js';
import { guaranteed, simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'package:2 numa:1 core:4 pu:2';

/** The messages on a channel during this test. */
function messagesOf<S extends keyof DiagnosticsMessages>(step: S): DiagnosticsMessages[S][] {
  const messages: DiagnosticsMessages[S][] = [];
  const listener = (message: unknown) => void messages.push(message as DiagnosticsMessages[S]);
  subscribe(DIAGNOSTICS_CHANNELS[step], listener);
  onTestFinished(() => void unsubscribe(DIAGNOSTICS_CHANNELS[step], listener));
  return messages;
}

describe('numalign:wait', () => {
  it('reports once that a request queues, and nothing for one that finds room', async () => {
    const manager = await simulate(MACHINE, { reservedSystemCPUs: '0' });
    const messages = messagesOf('wait');
    const [first, second] = [
      await manager.acquire({ cpu: 4, name: 'first', wait: true }),
      await manager.acquire({ cpu: 2, name: 'second', wait: true }),
    ];
    expect(messages).toEqual([]);
    const waiting = manager.acquire({ cpu: 14, name: 'third', wait: true });
    await expect.poll(() => messages.length).toBe(1);
    // A second attempt, in vain.
    await first.release();
    await second.release();
    await (await waiting).release();
    expect(messages).toEqual([
      { managerId: manager.id, stateDir: manager.stateDir, uid: null, name: 'third' },
    ]);
  });
});

describe('numalign:admit', () => {
  it('reports the request, the grant, and the time it took', async () => {
    const manager = await simulate(MACHINE, { reservedSystemCPUs: '0' });
    const messages = messagesOf('admit');
    const grant = await manager.acquire({ cpu: 2, memory: 0, name: 'gateway', policy: 'restricted' });
    expect(messages).toEqual([
      {
        managerId: manager.id,
        stateDir: manager.stateDir,
        durationMs: expect.any(Number),
        error: null,
        code: null,
        outcome: 'admitted',
        uid: grant.uid,
        name: 'gateway',
        policy: 'restricted',
        scope: 'container',
        options: expect.objectContaining({ 'full-pcpus-only': false, 'hold-sibling': false }),
        wait: false,
        containers: [
          {
            ...{ name: 'main', kind: 'app', exclusiveCpus: 2 },
            ...{ booksMemory: false, memoryTypes: [], l3Groups: 1 },
          },
        ],
        booking: null,
        container: null,
        cpus: grant.cpus.toString(),
        numaNodes: grant.numaNodes.toString(),
        enforcement: 'recorded',
      },
    ]);
    expect(messages[0]!.durationMs).toBeGreaterThan(0);
  });

  it('reports where a rejected request found no room and why, and that is no error', async () => {
    const manager = await simulate('package:2 [numa(memory=8GiB)] core:4 pu:2');
    const [messages, errors] = [messagesOf('admit'), messagesOf('error')];
    const containers = [
      guaranteed('small', { cpu: 2 }),
      guaranteed('large', { cpu: 20 }),
      guaranteed('part', { cpu: '500m' }),
    ];
    const error = await errorOf(() => manager.admit({ uid: 'pod-1', containers }));
    expect(messages).toMatchObject([
      {
        outcome: 'rejected',
        code: 'ERR_INSUFFICIENT_CPUS',
        uid: 'pod-1',
        container: 'large',
        cpus: null,
        numaNodes: null,
        enforcement: null,
        containers: [
          { name: 'small', exclusiveCpus: 2, booksMemory: true, memoryTypes: ['memory'], l3Groups: null },
          { name: 'large', exclusiveCpus: 20, booksMemory: true },
          { name: 'part', exclusiveCpus: 0, booksMemory: true },
        ],
      },
    ]);
    expect(messages[0]!.error).toBe(error);
    expect(errors).toEqual([]);
  });

  it('reports the request of a pod as a whole, and the parts of its containers', async () => {
    const manager = await simulate('numa:1(memory=8GiB) l3:2 core:4 pu:1', {
      scope: 'pod',
      featureGates: { PodLevelResourceManagers: true },
    });
    const messages = messagesOf('admit');
    const containers = [guaranteed('own', { cpu: 2, memory: '1Gi' }), { name: 'shared' }];
    const whole = { cpu: 5, memory: '2Gi' };
    await manager.admit({ resources: { requests: whole, limits: whole }, containers });
    expect(messages).toMatchObject([
      {
        booking: { exclusiveCpus: 5, memoryTypes: ['memory'], l3Groups: 2 },
        containers: [
          { name: 'own', exclusiveCpus: 2, booksMemory: true, memoryTypes: ['memory'], l3Groups: 1 },
          { name: 'shared', exclusiveCpus: 0, booksMemory: false, memoryTypes: [], l3Groups: null },
        ],
      },
    ]);
  });

  it('reports no exclusive CPUs if the pod as a whole does not request a whole number', async () => {
    const manager = await simulate('numa:1(memory=8GiB) core:4 pu:1', {
      scope: 'pod',
      featureGates: { PodLevelResourceManagers: true },
    });
    const messages = messagesOf('admit');
    const whole = { cpu: '2500m', memory: '2Gi' };
    const containers = [guaranteed('own', { cpu: 2, memory: '1Gi' }), { name: 'shared' }];
    await manager.admit({ resources: { requests: whole, limits: whole }, containers });
    expect(messages).toMatchObject([
      {
        booking: { exclusiveCpus: 0, memoryTypes: ['memory'], l3Groups: null },
        containers: [
          { exclusiveCpus: 0, booksMemory: true },
          { exclusiveCpus: 0, booksMemory: false },
        ],
      },
    ]);
  });

  it('reports all L3 groups of a grant, whatever its parts', async () => {
    const manager = await simulate('numa:1 l3:2 core:4 pu:1');
    const messages = messagesOf('admit');
    await manager.acquire({ cpu: 5, parts: { main: 1 } });
    await manager.acquire({ cpu: 2, parts: { io: 1 } });
    expect(messages.map(({ containers }) => containers[0]!.l3Groups)).toEqual([2, 1]);
  });

  it('reports a pod that was admitted already', async () => {
    const manager = await simulate(MACHINE);
    const pod = { uid: 'pod-1', containers: [guaranteed('main', { cpu: 2 })] };
    await manager.admit(pod);
    const messages = messagesOf('admit');
    const { containers } = await manager.admit(pod);
    expect(messages).toMatchObject([{ outcome: 'already', uid: 'pod-1', cpus: String(containers[0]!.cpus) }]);
  });

  it('reports a request that gave up waiting as failed, and on the channel of errors', async () => {
    const manager = await simulate(MACHINE, { reservedSystemCPUs: '0' });
    await manager.acquire({ cpu: 15 });
    const [messages, errors] = [messagesOf('admit'), messagesOf('error')];
    const reason = new RangeError('enough');
    const abort = new AbortController();
    const waiting = manager.acquire({ cpu: 1, wait: true, signal: abort.signal });
    setImmediate(() => abort.abort(reason));
    expect(await errorOf(() => waiting)).toBe(reason);
    expect(messages).toMatchObject([{ outcome: 'failed', code: 'RangeError', wait: true, uid: null }]);
    expect(errors).toEqual([
      {
        managerId: manager.id,
        stateDir: manager.stateDir,
        step: 'admit',
        code: 'RangeError',
        message: 'enough',
        error: reason,
      },
    ]);
  });

  it('does not tell of input that is no request', async () => {
    const manager = await simulate(MACHINE);
    const [messages, errors] = [messagesOf('admit'), messagesOf('error')];
    await errorOf(() => manager.acquire({ cpu: 0 }));
    expect([...messages, ...errors]).toEqual([]);
  });
});

describe('numalign:release', () => {
  it.each(['the grant', 'its id', 'its pod'])('tells what is free again, released by %s', async (by) => {
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 2, name: 'gateway' });
    const cpus = grant.cpus.toString();
    const messages = messagesOf('release');
    if (by === 'the grant') await grant.release();
    else if (by === 'its id') await manager.release(grant.uid);
    else await manager.pod(grant.uid).release();
    // Twice is once.
    await grant.release();
    expect(messages[0]).toEqual({
      managerId: manager.id,
      stateDir: manager.stateDir,
      durationMs: expect.any(Number),
      error: null,
      code: null,
      uid: grant.uid,
      name: 'gateway',
      cpus,
      handedOver: false,
    });
  });

  it('tells of a grant that is left to a child', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const child = grant.spawn('sleep', ['60']);
    const messages = messagesOf('release');
    expect(await grant.handOver()).toBe(true);
    expect(messages).toMatchObject([{ uid: grant.uid, handedOver: true }]);
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
});

describe('numalign:apply', () => {
  it('tells how many threads were moved, and which process was started', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    onTestFinished(async () => void (await grant.release()));
    const messages = messagesOf('apply');
    const pinned = grant.pin();
    const undone = await grant.unpin();
    const pool = await grant.prewarmPool();
    const placed = await grant.placeThreads();
    const child = grant.spawn('true');
    await once(child, 'exit');
    const same = { uid: grant.uid, cpus: grant.cpus.toString(), error: null, code: null };
    const { main, workers, pool: placedPool, v8, others } = placed;
    const numPlaced = [main, workers, placedPool, v8, others].reduce(
      (sum, { moved }) => sum + moved.length,
      0,
    );
    expect(messages).toMatchObject([
      { ...same, action: 'pin', moved: pinned.moved.length, unmovable: pinned.unmovable.length, pid: null },
      { ...same, action: 'unpin', moved: undone.moved.length, unmovable: 0, pid: null },
      { ...same, action: 'prewarm', moved: pool.moved.length, unmovable: 0, pid: null },
      { ...same, action: 'place', moved: numPlaced, unmovable: 0, pid: null },
      { ...same, action: 'spawn', moved: null, unmovable: null, pid: child.pid },
    ]);
    expect(numPlaced).toBeGreaterThan(pool.moved.length);
    expect(pinned.moved.length).toBeGreaterThan(0);
  });

  it('tells what a grant has after it was resized', async () => {
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 2 });
    const messages = messagesOf('apply');
    await grant.resize({ cpu: 4, noticeMs: 0 });
    expect(grant.cpus.size).toBe(4);
    expect(messages).toMatchObject([{ action: 'resize', cpus: grant.cpus.toString(), moved: 0 }]);
  });

  it('tells what went wrong, and on the channel of errors', async () => {
    const manager = await openManager({ stateDir: makeStateDir(), reservedSystemCPUs: '0' });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    onTestFinished(async () => void (await grant.release()));
    const [messages, errors] = [messagesOf('apply'), messagesOf('error')];
    // No thread has this id.
    const error = await errorOf(() => grant.pin({ threads: 0x3fffffff }));
    expect(messages).toMatchObject([
      { action: 'pin', error, code: error.code, moved: null, unmovable: null },
    ]);
    expect(errors).toMatchObject([{ step: 'apply', code: error.code, error }]);
  });
});

describe('numalign:error', () => {
  it('reports an unreadable state, while there are listeners for changes', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const errors = messagesOf('error');
    manager.on('change', () => {});
    makeNewer(stateDir);
    const [messages] = await until(() => errors.length > 0 && errors, 'the error');
    expect(messages).toMatchObject({
      step: 'watch',
      code: 'ERR_STATE_VERSION',
      managerId: manager.id,
      stateDir: manager.stateDir,
    });
  });

  it('reports files that other programs removed, as the event does', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    await manager.acquire({ cpu: 1 });
    const errors = messagesOf('error');
    const heard: Error[] = [];
    manager.on('error', (error) => heard.push(error));
    for (const name of readdirSync(join(stateDir, 'owners'))) rmSync(join(stateDir, 'owners', name));
    await until(() => heard.length > 0 && heard, 'the event');
    expect(errors).toMatchObject([{ step: 'watch', code: 'ERR_STATE_CORRUPT', error: heard[0] }]);
  });
});

describe('the channels', () => {
  it('have frozen messages that distinguish managers of one state', async () => {
    const stateDir = makeStateDir();
    const one = await openManager({ stateDir });
    const other = await openManager({ stateDir });
    onTestFinished(() => {
      for (const manager of [one, other]) manager.close();
    });
    const messages = messagesOf('admit');
    await (await other.acquire({ cpu: 1 })).release();
    expect(one.id).not.toBe(other.id);
    expect(messages).toMatchObject([{ managerId: other.id, stateDir: other.stateDir }]);
    expect(messages.every((message) => Object.isFrozen(message) && Object.isFrozen(message.containers))).toBe(
      true,
    );
  });

  const source: Source = { managerId: 0, ledger: { scope: 'private', path: '/state' } as Source['ledger'] };

  it('cost nothing without subscribers: nothing is described, and promises are not wrapped', () => {
    const describe = () => {
      throw new Error('described');
    };
    const promise = Promise.resolve(1);
    expect(traced('release', source, () => promise, describe)).toBe(promise);
    publish('drift', source, describe);
  });

  it('have the reports of reconciliation', async () => {
    const [rounds, drifts] = [messagesOf('reconcile'), messagesOf('drift')];
    publish('drift', source, () => ({
      kind: 'mask',
      uid: 'pod-1',
      what: 'thread 7 left CPUs 2-3',
      repaired: true,
    }));
    const round = { checked: 3, repaired: 1, contested: 0, writes: 1 };
    expect(
      await traced(
        'reconcile',
        source,
        async () => round,
        ({ value }) => value ?? { ...round, checked: 0 },
      ),
    ).toBe(round);
    expect(drifts).toMatchObject([{ stateDir: '/state', kind: 'mask', uid: 'pod-1', repaired: true }]);
    expect(rounds).toMatchObject([
      { ...round, stateDir: '/state', error: null, durationMs: expect.any(Number) },
    ]);
  });
});
