// needs: agents
import { describe, expect, it, onTestFinished } from 'vitest';
import type { MoveEnd } from '../../lib/entries/diagnostics.js';
import { type Grant, type Manager, type MoveEvent, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { abandonMove, hostOf, move, release } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';

const twoNodes = () => machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));

async function open(stateDir = makeStateDir()): Promise<Manager> {
  const manager = await openManager({ topology: await twoNodes(), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

const SECOND = { cpus: '4-5', node: 1 };

const reservedOf = (manager: Manager) => manager.memory().map(({ reserved }) => reserved / GI);
const cpusOf = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus, upcoming }) => [name, `${cpus}${upcoming ?? ''}`]));

/** A grant on CPUs 0-1 and 2 GiB of node 0. */
const onFirst = (manager: Manager, options: object = { movable: true }): Promise<Grant> =>
  manager.acquire({ cpu: 2, memory: '2Gi', name: 'mover', policy: 'single-numa-node', ...options });

describe('a move within one process', () => {
  it('moves the grant to its target, and keeps the room that it leaves for the request', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    const before = String(grant.cpus);
    expect(reservedOf(manager)).toEqual([2, 0]);
    await move(manager, grant.uid, SECOND, { for: 'asker' });
    expect(cpusOf(manager)).toEqual({ mover: '4-5', asker: before });
    expect(reservedOf(manager)).toEqual([2, 2]);
    expect(grant.memory.map(({ nodes }) => nodes)).toEqual([[1]]);
    await release(manager, 'asker');
    expect(cpusOf(manager)).toEqual({ mover: '4-5' });
    expect(reservedOf(manager)).toEqual([0, 2]);
  });

  it('shows where the grant goes, and what it leaves, from its beginning', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    await abandonMove(hostOf(manager), grant.uid, '4-5', true);
    const [info] = manager.grants();
    expect([info!.cpus, info!.upcoming, info!.former].map(String)).toEqual(['4-5', '4-5', '0-1']);
    expect(String(grant.upcoming)).toBe('4-5');
  });

  it('informs listeners before and after', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    const announcements: string[] = [];
    grant.on('move', ({ before, cpus, nodes, memoryNodes }: MoveEvent) => {
      announcements.push(`${before} to ${cpus} of ${nodes}, memory ${memoryNodes}; has ${grant.cpus}`);
    });
    const end = new Promise<MoveEnd>((resolve) => grant.once('moveEnd', resolve));
    await move(manager, grant.uid, SECOND, { for: 'asker' });
    expect(announcements).toEqual(['0-1 to 4-5 of 1, memory 1; has 0-1']);
    expect(await end).toMatchObject({ isMoved: true, error: null });
    expect(String((await end).cpus)).toBe('4-5');
  });

  it('waits for the promise of the listener, and holds both places meanwhile', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    let go = () => {};
    const announced = new Promise<void>((resolve) => {
      grant.on('move', (event) => {
        event.waitUntil(new Promise<void>((done) => (go = done)));
        resolve();
      });
    });
    const moving = move(manager, grant.uid, SECOND, { for: 'asker' });
    await announced;
    expect(cpusOf(manager)).toEqual({ mover: '0-14-5', asker: '' });
    expect(reservedOf(manager)).toEqual([2, 2]);
    expect(String(manager.sharedPool())).toBe('2-3,6-7');
    go();
    await moving;
    expect(String(grant.cpus)).toBe('4-5');
  });

  it.each([
    ['rejects', (event: MoveEvent) => event.waitUntil(Promise.reject(new Error('not now')))],
    ['is asynchronous and rejects', () => Promise.reject(new Error('not now'))],
    [
      'throws',
      () => {
        throw new Error('not now');
      },
    ],
  ])('does not happen if a listener %s, and leaves nothing behind', async (_, listener) => {
    const manager = await open();
    const grant = await onFirst(manager);
    grant.on('move', listener);
    const end = new Promise<MoveEnd>((resolve) => grant.once('moveEnd', resolve));
    const error = await errorOf(() => move(manager, grant.uid, SECOND, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { value: grant.uid, reason: 'refused' } });
    expect(cpusOf(manager)).toEqual({ mover: '0-1' });
    expect(reservedOf(manager)).toEqual([2, 0]);
    expect(await end).toMatchObject({ isMoved: false, error: { cause: { message: 'not now' } } });
  });

  it('does not happen if a listener does not answer within the notice', async () => {
    const manager = await open();
    const grant = await onFirst(manager, { movable: { notice: 50 } });
    grant.on('move', (event) => event.waitUntil(new Promise(() => {})));
    const error = await errorOf(() => move(manager, grant.uid, SECOND, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'no-answer' } });
    expect(cpusOf(manager)).toEqual({ mover: '0-1' });
  });

  it('keeps the room of two grants for one request', async () => {
    const manager = await open();
    const [first, second] = [
      await onFirst(manager, { cpu: 1, movable: true }),
      await onFirst(manager, { cpu: 1, movable: true }),
    ];
    await move(manager, first.uid, { cpus: '4', node: 1 }, { for: 'asker' });
    await move(manager, second.uid, { cpus: '5', node: 1 }, { for: 'asker' });
    expect(manager.grants().map(({ cpus }) => String(cpus))).toEqual(['4', '5', '0-1']);
    expect(reservedOf(manager)).toEqual([4, 4]);
  });

  it('may go to room that another has made for the same request', async () => {
    const manager = await open();
    const first = await onFirst(manager);
    await move(manager, first.uid, SECOND, { for: 'asker' });
    const second = await manager.acquire({ cpu: 2, name: 'second', movable: true });
    await move(manager, second.uid, { cpus: '0-1', node: 0 }, { for: 'asker' });
    expect(cpusOf(manager)).toMatchObject({ second: '0-1' });
    expect(manager.grants().find(({ uid }) => uid === 'asker')!.cpus.size).toBe(2);
  });
});

describe('a second move for one request', () => {
  it('may take memory of the room that the first has made', async () => {
    const manager = await open();
    const first = await onFirst(manager, { memory: '4Gi', movable: true });
    await onFirst(manager, { memory: '3Gi', name: 'filler' });
    const second = await onFirst(manager, { cpu: 1, memory: '3Gi', name: 'second', movable: true });
    expect(reservedOf(manager)).toEqual([7, 3]);
    await move(manager, first.uid, { cpus: '6-7', node: 1 }, { for: 'asker' });
    expect(reservedOf(manager)).toEqual([7, 7]);
    await move(manager, second.uid, { cpus: '0', node: 0 }, { for: 'asker' });
    // Of the 4 GiB that the first has left, 2 are the second's, and so is the free one.
    expect(reservedOf(manager)).toEqual([8, 7]);
    expect(second.memory).toEqual([{ nodes: [0], type: 'memory', bytes: 3 * GI }]);
    expect(cpusOf(manager)).toMatchObject({ mover: '6-7', second: '0', asker: '1,4' });
    await release(manager, 'asker');
    expect(reservedOf(manager)).toEqual([6, 4]);
  });
});

describe('the room that a move has made', () => {
  const pod = {
    uid: 'asker',
    qosClass: 'Guaranteed',
    containers: [{ name: 'main', limits: { cpu: 2, memory: '8Gi' } }],
  };

  it('belongs only to the request, which takes it in one step', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    await move(manager, grant.uid, SECOND, { for: 'asker' });
    const filler = await manager.acquire({ cpu: 3 });
    expect(String(filler.cpus)).not.toMatch(/0|1(?!\d)/);
    const admitted = await manager.admit(pod as never, { policy: 'single-numa-node' });
    expect(String(admitted.containers[0]!.cpus)).toBe('0-1');
    expect(manager.grants().map(({ uid }) => uid)).toEqual([grant.uid, filler.uid, 'asker']);
    expect(reservedOf(manager)).toEqual([8, 2]);
  });

  it('is free again if the request is rejected nevertheless', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    await move(manager, grant.uid, SECOND, { for: 'asker' });
    const large = { ...pod, containers: [{ name: 'main', limits: { cpu: 5 } }] };
    const options = { policy: 'single-numa-node' } as const;
    const error = await errorOf(() => manager.admit(large as never, options));
    expect(error).toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    expect(cpusOf(manager)).toEqual({ mover: '4-5' });
  });
});

describe('an invalid move', () => {
  it.each([
    ['without consent', {}, 'ERR_NOT_MOVABLE'],
    ['to a node that is excluded', { movable: { exclude: [1] } }, 'ERR_NOT_MOVABLE'],
  ])('is refused at once: %s', async (_, options, code) => {
    const manager = await open();
    const grant = await onFirst(manager, options);
    const error = await errorOf(() => move(manager, grant.uid, SECOND, { for: 'asker' }));
    expect(error).toMatchObject({ code });
    expect(cpusOf(manager)).toEqual({ mover: '0-1' });
  });

  it('is refused once the allowed number within an hour is reached', async () => {
    const manager = await open();
    const grant = await onFirst(manager, { movable: { maxPerHour: 1 } });
    await move(manager, grant.uid, SECOND, { for: 'asker' });
    const error = await errorOf(() => move(manager, grant.uid, { cpus: '0-1', node: 0 }, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVABLE', details: { value: 1 } });
  });

  it.each([
    ['CPUs that another has', { cpus: '4-5', node: 1 }, { cpu: 2 }],
    ['a node whose memory another has', { cpus: '6-7', node: 1 }, { cpu: 1, memory: '7Gi' }],
  ])('is refused without room: %s', async (_, to, other) => {
    const manager = await open();
    const grant = await onFirst(manager);
    await manager.acquire({ cpu: 2, name: 'filler' });
    await manager.acquire({ ...other, name: 'other', policy: 'single-numa-node' });
    const error = await errorOf(() => move(manager, grant.uid, to, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'no-room' } });
    expect(String(grant.cpus)).toBe('0-1');
  });

  it('is refused if no CPU would be shared while it holds both places', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    await manager.acquire({ cpu: 4, policy: 'none' });
    const [free] = [manager.freeCpus()];
    expect(free.size).toBe(2);
    const to = { cpus: String(free), node: 1 };
    const error = await errorOf(() => move(manager, grant.uid, to, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'no-room' } });
    expect(String(grant.cpus)).toBe('0-1');
  });

  it('does not begin if the kubelet has taken some of the CPUs meanwhile', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    const containers = [{ name: 'main', cpus: '5' }];
    grant.on('move', () => manager.recordKubelet([{ namespace: 'default', name: 'web', containers }]));
    const end = new Promise<MoveEnd>((resolve) => grant.once('moveEnd', resolve));
    const error = await errorOf(() => move(manager, grant.uid, SECOND, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED' });
    expect(await end).toMatchObject({ isMoved: false, error: { details: { reason: 'no-room' } } });
    expect(String(grant.cpus)).toBe('0-1');
    expect(manager.grants().flatMap(({ flags }) => flags)).toEqual([]);
  });

  it('is refused if memory of the node is allocated together with that of others', async () => {
    const topology = await machineOf([0, 1, 2].map(() => ({ cpus: 4, memory: 8 * GI })));
    const manager = await openManager({ topology, stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await onFirst(manager);
    const spread = await manager.acquire({ cpu: 1, memory: '10Gi', policy: 'best-effort' });
    expect(spread.memory[0]!.nodes).toEqual([1, 2]);
    const to = { cpus: '10-11', node: 2 };
    const error = await errorOf(() => move(manager, grant.uid, to, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'no-room' } });
  });

  it('leaves mixed grants their booking of the shared pool while it holds both places', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    const [mixed] = await Promise.all(
      Array.from({ length: 3 }, () => manager.acquire({ cpu: 1.5, mixed: true, name: 'mixed' })),
    );
    const free = [...manager.freeCpus()].slice(0, 2);
    const to = { cpus: String(free), node: 1 };
    const error = await errorOf(() => move(manager, grant.uid, to, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_NOT_MOVED', details: { reason: 'no-room' } });
    expect(String(grant.cpus)).toBe('0-1');
    await mixed!.release();
    await move(manager, grant.uid, to, { for: 'asker' });
    expect([...grant.cpus]).toEqual(free);
  });

  it('is refused if the target has another size', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    const error = await errorOf(() => move(manager, grant.uid, { cpus: '4-6', node: 1 }, { for: 'asker' }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_ARGUMENT' });
  });

  it('is refused if the uid of the request is on record', async () => {
    const manager = await open();
    const grant = await onFirst(manager);
    const other = await manager.acquire({ cpu: 1 });
    const error = await errorOf(() => move(manager, grant.uid, SECOND, { for: other.uid }));
    expect(error).toMatchObject({ code: 'ERR_POD_CONFLICT', details: { value: other.uid } });
  });
});
