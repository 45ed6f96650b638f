import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type AcquireOptions,
  AdmissionError,
  type Grant,
  type Manager,
  type ManagerOptions,
  type MoveEvent,
  openManager,
} from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { makeStateDir } from '../support/state-dir.js';

const SINGLE = { policy: 'single-numa-node' } as const;

async function open(options: ManagerOptions = { cpuManagerPolicy: 'dynamic' }, cpus = 4): Promise<Manager> {
  const topology = await machineOf([0, 1].map(() => ({ cpus, memory: 8 * GI })));
  const manager = await openManager({ topology, stateDir: makeStateDir(), ...options });
  onTestFinished(() => manager.close());
  return manager;
}

const cpusOf = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus }) => [name, String(cpus)]));

/** Two CPUs of each node are free, the first ones are of `mover` and `filler`. */
async function fragmented(manager: Manager, options: Partial<AcquireOptions> = { movable: true }) {
  const mover = await manager.acquire({ cpu: 2, name: 'mover', ...SINGLE, ...options });
  const rest = await manager.acquire({ cpu: 2, ...SINGLE });
  const filler = await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
  await rest.release();
  return { mover, filler };
}

const three = (manager: Manager, options: Partial<AcquireOptions> = {}): Promise<Grant> =>
  manager.acquire({ cpu: 3, name: 'asker', ...SINGLE, ...options });

const pod = (cpu: number | string, uid = 'pod') => ({
  uid,
  containers: [{ name: 'main', limits: { cpu, memory: '1Gi' } }],
});

describe('a request that no node has room for, while there is enough in all', () => {
  it('is admitted once a grant that consents has moved out of its way', async () => {
    const manager = await open();
    const { mover } = await fragmented(manager);
    expect(cpusOf(manager)).toEqual({ mover: '0-1', filler: '4-5' });
    await three(manager);
    expect(cpusOf(manager)).toEqual({ mover: '6-7', filler: '4-5', asker: '0-2' });
    expect(String(mover.cpus)).toBe('6-7');
  });

  it('has the owner hear of the move, and of the grant that it is for', async () => {
    const manager = await open();
    const { mover } = await fragmented(manager);
    const told: MoveEvent[] = [];
    mover.on('move', (event) => told.push(event));
    const asker = await three(manager);
    expect(told.map((event) => [String(event.cpus), event.for])).toEqual([['6-7', asker.uid]]);
  });

  it('is admitted as a pod, too', async () => {
    const manager = await open();
    await fragmented(manager);
    await manager.admit(pod(3), SINGLE);
    expect(cpusOf(manager)).toEqual({ mover: '6-7', filler: '4-5', pod: '0-2' });
  });

  it('is admitted with the other pods of a batch', async () => {
    const manager = await open();
    await fragmented(manager);
    await manager.admitAll([pod('500m', 'small'), pod(3)], SINGLE);
    expect(cpusOf(manager)).toEqual({ mover: '6-7', filler: '4-5', small: '', pod: '0-2' });
  });

  it('waits in its turn, and has grants moved once there is enough', async () => {
    const manager = await open();
    await fragmented(manager);
    const last = await manager.acquire({ cpu: 1, name: 'last' });
    const waiting = three(manager, { wait: true });
    const next = three(manager, { wait: true, name: 'next', cpu: 1, policy: 'best-effort' });
    await last.release();
    await waiting;
    expect(cpusOf(manager)).toMatchObject({ mover: '6-7', asker: '0-2' });
    await (await waiting).release();
    await next;
  });

  it('is rejected under the static policy', async () => {
    const manager = await open({});
    await fragmented(manager);
    const error = await errorOf(() => three(manager));
    expect(error).toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    expect((error as AdmissionError).details.repacking).toBeUndefined();
    expect(cpusOf(manager)).toEqual({ mover: '0-1', filler: '4-5' });
  });
});

describe('a request that is rejected all the same', () => {
  it('says that no grant that consents makes room', async () => {
    const manager = await open();
    await fragmented(manager, {});
    const error = await errorOf(() => three(manager));
    expect(error).toMatchObject({
      code: 'ERR_TOPOLOGY_AFFINITY',
      details: { repacking: { moves: [], reason: 'grants', unmoved: [] } },
    });
    expect((error as Error).message).toContain('no move of a grant that consents would make room');
  });

  it('says so where what is free in all would not do', async () => {
    const manager = await open();
    await fragmented(manager);
    const error = await errorOf(() => three(manager, { cpu: 4, policy: 'best-effort' }));
    expect(error).toMatchObject({ details: { repacking: { reason: 'sum' } } });
  });

  it('says which grant refused to move', async () => {
    const manager = await open();
    const { mover } = await fragmented(manager);
    mover.on('move', (event) => event.waitUntil(Promise.reject(new Error('not now'))));
    const error = await errorOf(() => three(manager));
    expect(error).toMatchObject({
      details: { repacking: { unmoved: [{ uid: mover.uid, name: 'mover', reason: 'refused' }] } },
    });
    expect((error as Error).message).toContain('"mover" would have made room, and has not moved (refused)');
    expect(cpusOf(manager)).toEqual({ mover: '0-1', filler: '4-5' });
  });

  it('gives nothing up for a grant that may not move any more within the hour', async () => {
    const manager = await open();
    const { filler } = await fragmented(manager, { movable: { maxPerHour: 1 } });
    const asker = await three(manager);
    await asker.release();
    await filler.release();
    await manager.acquire({ cpu: 2, name: 'back', ...SINGLE });
    expect(cpusOf(manager)).toEqual({ mover: '6-7', back: '0-1' });
    const error = await errorOf(() => three(manager));
    expect(error).toMatchObject({ details: { repacking: { reason: 'grants' } } });
  });
});

describe('a request for which one of several grants may move', () => {
  /** Two grants of one CPU on the first node, and one of two CPUs on the second. */
  async function withTwo(manager: Manager): Promise<readonly Grant[]> {
    const small = { cpu: 1, memory: '1Gi', movable: true, ...SINGLE } as const;
    const movers = [await manager.acquire({ ...small, name: 'a' }), await manager.acquire({ ...small, name: 'b' })];
    const rest = await manager.acquire({ cpu: manager.topology.nodes[0]!.cpus.size - 2, ...SINGLE });
    await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
    await rest.release();
    return movers;
  }

  it('has the other move where the first refuses', async () => {
    const manager = await open();
    const movers = await withTwo(manager);
    const refusals: string[] = [];
    for (const mover of movers) {
      mover.on('move', ({ uid }) => {
        if (refusals.push(uid) === 1) throw new Error('never');
      });
    }
    await three(manager);
    expect(new Set(refusals)).toEqual(new Set(movers.map(({ uid }) => uid)));
    const [stays, moved] = refusals.map((uid) => String(manager.grant(uid).numaNodes));
    expect([stays, moved]).toEqual(['0', '1']);
  });

  it('has both move where it takes both', async () => {
    const manager = await open({ cpuManagerPolicy: 'dynamic' }, 5);
    await withTwo(manager);
    await three(manager, { cpu: 5 });
    expect(cpusOf(manager)).toEqual({ a: '7', b: '8', filler: '5-6', asker: '0-4' });
    expect(manager.memory().map(({ reserved }) => reserved / GI)).toEqual([0, 2]);
  });

  it('gets nothing of the first where the second refuses', async () => {
    const manager = await open({ cpuManagerPolicy: 'dynamic' }, 5);
    let asked = 0;
    for (const mover of await withTwo(manager)) {
      mover.on('move', () => {
        if (++asked === 2) throw new Error('never');
      });
    }
    const error = await errorOf(() => three(manager, { cpu: 5 }));
    expect(error).toMatchObject({ details: { repacking: { unmoved: [{ reason: 'refused' }] } } });
    expect(manager.grants().map(({ name }) => name)).toEqual(['a', 'b', 'filler']);
    expect(manager.freeCpus().size).toBe(6);
    expect(manager.memory().map(({ reserved }) => reserved / GI)).toEqual([1, 1]);
  });
});

describe('two requests at a time', () => {
  it('are both admitted where there is room for both', async () => {
    const manager = await open({ cpuManagerPolicy: 'dynamic' }, 9);
    const one = { movable: true, memory: '1Gi', ...SINGLE } as const;
    for (const name of ['a', 'b', 'c']) await manager.acquire({ ...one, cpu: 2, name });
    const rest = await manager.acquire({ cpu: 3, ...SINGLE });
    for (const name of ['d', 'e']) await manager.acquire({ cpu: 2, name, ...SINGLE });
    await rest.release();
    expect(manager.freeCpus().size).toBe(8);
    // Nodes have 3 and 5 CPUs free.
    const [first, second] = await Promise.allSettled([
      three(manager, { cpu: 4, name: 'x' }),
      three(manager, { cpu: 3, name: 'y' }),
    ]);
    expect([first, second]).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }]);
    expect(manager.grants()).toHaveLength(7);
  });
});

describe('an abort', () => {
  it('ends the request, and leaves grants and room as they were', async () => {
    const manager = await open();
    const { mover } = await fragmented(manager);
    const abort = new AbortController();
    mover.on('move', (event) => {
      event.waitUntil(new Promise(() => {}));
      abort.abort(new Error('enough'));
    });
    const error = await errorOf(() => three(manager, { signal: abort.signal }));
    expect(error).toMatchObject({ message: 'enough' });
    expect(cpusOf(manager)).toEqual({ mover: '0-1', filler: '4-5' });
    expect(manager.grants().every(({ upcoming }) => upcoming === null)).toBe(true);
  });

  it('by the close of the manager does so too', async () => {
    const manager = await open();
    const other = await openManager({ topology: manager.topology, stateDir: manager.stateDir });
    onTestFinished(() => other.close());
    const { mover } = await fragmented(manager);
    mover.on('move', (event) => {
      event.waitUntil(new Promise(() => {}));
      manager.close();
    });
    const error = await errorOf(() => three(manager));
    expect(error).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
    expect(cpusOf(other)).toEqual({ mover: '0-1', filler: '4-5' });
  });
});
