// needs: agents
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AcquireOptions, type AdmissionError, type MoveEvent, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import {
  askForThree,
  cpusByName,
  DYNAMIC,
  fragment,
  fragmentByTwo,
  openTwoNodes,
  SINGLE,
} from '../support/fragmented.js';
import { GI, machineOf } from '../support/memory-machine.js';

const pod = (cpu: number | string, uid = 'pod') => ({
  uid,
  containers: [{ name: 'main', limits: { cpu, memory: '1Gi' } }],
});

describe('a request with enough room in total, but on no node', () => {
  it('is admitted once a grant that consents has moved out of its way', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
    await askForThree(manager);
    expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5', asker: '0-2' });
    expect(String(mover.cpus)).toBe('6-7');
  });

  it('informs the owner of the move, and of the grant that it is for', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    const moves: MoveEvent[] = [];
    mover.on('move', (event) => moves.push(event));
    const asker = await askForThree(manager);
    expect(moves.map((event) => [String(event.cpus), event.for])).toEqual([['6-7', asker.uid]]);
  });

  it('is admitted as a pod, too', async () => {
    const manager = await openTwoNodes();
    await fragment(manager);
    await manager.admit(pod(3), SINGLE);
    expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5', pod: '0-2' });
  });

  it('is admitted with the other pods of a batch', async () => {
    const manager = await openTwoNodes();
    await fragment(manager);
    await manager.admitAll([pod('500m', 'small'), pod(3)], SINGLE);
    expect(cpusByName(manager)).toEqual({ mover: '6-7', filler: '4-5', small: '', pod: '0-2' });
  });

  it('waits in its turn, and moves grants once there is enough', async () => {
    const manager = await openTwoNodes();
    await fragment(manager);
    const last = await manager.acquire({ cpu: 1, name: 'last' });
    const waiting = askForThree(manager, { wait: true });
    const next = askForThree(manager, { wait: true, name: 'next', cpu: 1, policy: 'best-effort' });
    await last.release();
    await waiting;
    expect(cpusByName(manager)).toMatchObject({ mover: '6-7', asker: '0-2' });
    await (await waiting).release();
    await next;
  });

  it('keeps waiting if the grant refuses, and does not ask it again', async () => {
    const manager = await openTwoNodes();
    const { mover, filler } = await fragment(manager);
    let refusals = 0;
    const isRefused = new Promise<void>((resolve) => {
      mover.on('move', () => {
        refusals++;
        throw new Error('never');
      });
      mover.on('moveEnd', () => resolve());
    });
    const waiting = askForThree(manager, { wait: true });
    await isRefused;
    // Each of these commits makes it try again.
    for (let i = 0; i < 3; i++) await (await manager.acquire({ cpu: 1 })).release();
    expect(refusals).toBe(1);
    await filler.release();
    expect(String((await waiting).numaNodes)).toBe('1');
    expect(cpusByName(manager)).toMatchObject({ mover: '0-1' });
  });

  it('is rejected under the static policy', async () => {
    const manager = await openTwoNodes({});
    await fragment(manager);
    const error = await errorOf(() => askForThree(manager));
    expect(error).toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    expect((error as AdmissionError).details.repacking).toBeUndefined();
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
  });
});

describe('an admission by a move', () => {
  it('commits the announcement, the move, its end, and the grant', async () => {
    const manager = await openTwoNodes();
    await fragment(manager);
    const before = manager.generation();
    await askForThree(manager);
    expect(manager.generation()).toBe(before + 4);
  });

  it('commits nothing if no move helps', async () => {
    const manager = await openTwoNodes();
    await fragment(manager, {});
    const before = manager.generation();
    await errorOf(() => askForThree(manager));
    expect(manager.generation()).toBe(before);
  });
});

describe('a plan', () => {
  it('lists the moves after which the pod would be admitted, and moves nothing', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    const { admitted, repacking, explanation } = manager.plan(pod(3), SINGLE);
    expect(admitted).toBe(false);
    const text = 'would be admitted after moving "mover" (CPUs 0-1 to 6-7)';
    expect(repacking).toMatchObject({ reason: null, isBounded: false, text, moves: [{ uid: mover.uid }] });
    expect(explanation!.text).toContain(text);
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
  });

  it('names no grant of memory alone, which cannot move', async () => {
    const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 2 * GI })));
    const manager = await openManager({ topology, ...DYNAMIC });
    onTestFinished(() => manager.close());
    const request = (uid: string, cpu: string, memory: string) => ({
      uid,
      containers: [{ name: 'main', limits: { cpu, memory } }],
    });
    await manager.admit(request('memory', '500m', '512Mi'), { ...SINGLE, movable: true });
    await manager.admit(request('beside', '1', '500Mi'), SINGLE);
    await manager.admit(request('other', '1', '1500Mi'), SINGLE);
    const { admitted, repacking } = manager.plan(request('asker', '1', '1500Mi'), SINGLE);
    expect([admitted, repacking]).toMatchObject([false, { moves: [], reason: 'grants' }]);
  });

  it('names all grants that would move', async () => {
    const manager = await openTwoNodes(DYNAMIC, 5);
    await fragmentByTwo(manager);
    const { moves, text } = manager.plan(pod(5), SINGLE).repacking!;
    expect(moves.map(({ name, nodes }) => `${name} ${nodes}`).sort()).toEqual(['a 1', 'b 1']);
    expect(text).toMatch(
      /^would be admitted after moving "[ab]" \(CPU \d to \d\) and "[ab]" \(CPU \d to \d\)$/,
    );
  });

  it('lists the same for a prepared pod, as long as they are valid', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    const prepared = manager.prepare(pod(3), SINGLE);
    expect(prepared.plan().repacking!.moves).toHaveLength(1);
    await mover.release();
    expect(prepared.plan()).toMatchObject({ admitted: true, repacking: null });
  });

  it('has no moves under the static policy', async () => {
    const manager = await openTwoNodes({});
    await fragment(manager);
    expect(manager.plan(pod(3), SINGLE)).toMatchObject({ admitted: false, repacking: null });
  });
});

describe('a rejected request', () => {
  it('says that no consenting grant makes room', async () => {
    const manager = await openTwoNodes();
    await fragment(manager, {});
    const error = await errorOf(() => askForThree(manager));
    expect(error).toMatchObject({
      code: 'ERR_TOPOLOGY_AFFINITY',
      details: { repacking: { moves: [], reason: 'grants', unmoved: [] } },
    });
    expect((error as Error).message).toContain('no move of a grant that consents would make room');
  });

  it('says so if too little is free in all', async () => {
    const manager = await openTwoNodes();
    await fragment(manager);
    const error = await errorOf(() => askForThree(manager, { cpu: 4, policy: 'best-effort' }));
    expect(error).toMatchObject({ details: { repacking: { reason: 'sum' } } });
  });

  it('names the grant that refused to move', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    mover.on('move', (event) => event.waitUntil(Promise.reject(new Error('not now'))));
    const error = await errorOf(() => askForThree(manager));
    expect(error).toMatchObject({
      details: { repacking: { unmoved: [{ uid: mover.uid, name: 'mover', reason: 'refused' }] } },
    });
    expect((error as Error).message).toContain('"mover" could have made room, but did not move (refused)');
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
  });

  it('keeps nothing of a grant that may not move again within the hour', async () => {
    const manager = await openTwoNodes();
    const { filler } = await fragment(manager, { movable: { maxPerHour: 1 } });
    const asker = await askForThree(manager);
    await asker.release();
    await filler.release();
    await manager.acquire({ cpu: 2, name: 'back', ...SINGLE });
    expect(cpusByName(manager)).toEqual({ mover: '6-7', back: '0-1' });
    const error = await errorOf(() => askForThree(manager));
    expect(error).toMatchObject({ details: { repacking: { reason: 'grants' } } });
  });
});

describe('a request for which one of several grants may move', () => {
  it('moves the other if the first refuses', async () => {
    const manager = await openTwoNodes();
    const movers = await fragmentByTwo(manager);
    const refusals: string[] = [];
    for (const mover of movers) {
      mover.on('move', ({ uid }) => {
        if (refusals.push(uid) === 1) throw new Error('never');
      });
    }
    await askForThree(manager);
    expect(new Set(refusals)).toEqual(new Set(movers.map(({ uid }) => uid)));
    const [stays, moved] = refusals.map((uid) => String(manager.grant(uid).numaNodes));
    expect([stays, moved]).toEqual(['0', '1']);
  });

  it('moves both if it needs both', async () => {
    const manager = await openTwoNodes(DYNAMIC, 5);
    await fragmentByTwo(manager);
    await askForThree(manager, { cpu: 5 });
    const nodes = manager.grants().map(({ name, numaNodes }) => `${name} ${numaNodes}`);
    expect(nodes).toEqual(['a 1', 'b 1', 'filler 1', 'asker 0']);
    expect(manager.memory().map(({ reserved }) => reserved / GI)).toEqual([0, 2]);
  });

  it.each<[why: string, nodes: number[], fixed: AcquireOptions[], free: number]>([
    ['the pool needs', [6, 6, 6], [{ cpu: 1 }], 1],
    ['mixed grants have booked', [7, 6, 6, 1], Array(2).fill({ cpu: 1.6, mixed: true }), 2],
  ])('moves both even if the room of the first is the last that %s', async (_, nodes, fixed, free) => {
    const topology = await machineOf(nodes.map((cpus) => ({ cpus, memory: 8 * GI })));
    const manager = await openManager({ topology, ...DYNAMIC });
    onTestFinished(() => manager.close());
    const acquire = (cpu: number, movable = true) =>
      manager.acquire({ cpu, ...SINGLE, ...(movable && { movable }) });
    await acquire(3);
    await acquire(2);
    for (const options of fixed) await manager.acquire({ ...options, ...SINGLE });
    await acquire(4);
    const rest = await acquire(2, false);
    await acquire(3, false);
    await rest.release();
    const grant = await acquire(4, false);
    expect(grant.numaNodes.toString()).toBe('0');
    expect(manager.freeCpus().size).toBe(free);
  });

  it('does not ask the second where the first refuses', async () => {
    const manager = await openTwoNodes(DYNAMIC, 5);
    const asked: string[] = [];
    for (const mover of await fragmentByTwo(manager)) {
      mover.on('move', ({ uid }) => {
        asked.push(uid);
        throw new Error('never');
      });
    }
    await errorOf(() => askForThree(manager, { cpu: 5 }));
    expect(asked).toHaveLength(1);
  });

  it('gets nothing of the first if the second refuses', async () => {
    const manager = await openTwoNodes(DYNAMIC, 5);
    let asked = 0;
    for (const mover of await fragmentByTwo(manager)) {
      mover.on('move', () => {
        if (++asked === 2) throw new Error('never');
      });
    }
    const error = await errorOf(() => askForThree(manager, { cpu: 5 }));
    expect(error).toMatchObject({ details: { repacking: { unmoved: [{ reason: 'refused' }] } } });
    expect(manager.grants().map(({ name }) => name)).toEqual(['a', 'b', 'filler']);
    expect(manager.freeCpus().size).toBe(6);
    expect(manager.memory().map(({ reserved }) => reserved / GI)).toEqual([1, 1]);
  });
});

describe('a pod that is placed under the dynamic policy', () => {
  it('gets the same CPUs as under the static one', async () => {
    for (const options of [DYNAMIC, { cpuManagerPolicy: 'static' } as const]) {
      const manager = await openTwoNodes(options);
      await manager.admit(pod(3), SINGLE);
      expect(cpusByName(manager)).toEqual({ pod: '0-2' });
      expect(manager.placement.cpuManagerPolicy).toBe(options.cpuManagerPolicy);
      expect(JSON.parse(manager.exportKubelet().cpuManagerState)).toMatchObject({ policyName: 'static' });
    }
  });
});

describe('two requests at a time', () => {
  it('are both admitted if there is room for both', async () => {
    const manager = await openTwoNodes(DYNAMIC, 9);
    const one = { movable: true, memory: '1Gi', ...SINGLE } as const;
    for (const name of ['a', 'b', 'c']) await manager.acquire({ ...one, cpu: 2, name });
    const rest = await manager.acquire({ cpu: 3, ...SINGLE });
    for (const name of ['d', 'e']) await manager.acquire({ cpu: 2, name, ...SINGLE });
    await rest.release();
    expect(manager.freeCpus().size).toBe(8);
    // Nodes have 3 and 5 CPUs free.
    const [first, second] = await Promise.allSettled([
      askForThree(manager, { cpu: 4, name: 'x' }),
      askForThree(manager, { cpu: 3, name: 'y' }),
    ]);
    expect([first, second]).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }]);
    expect(manager.grants()).toHaveLength(7);
  });
});

describe('a request that comes while others move a grant', () => {
  it('waits for the CPUs that the grant holds in both places', async () => {
    const manager = await openTwoNodes(DYNAMIC, 5);
    const { mover } = await fragment(manager);
    const isAsked = new Promise<() => void>((resolve) => {
      mover.on('move', () => new Promise((_, reject) => resolve(() => reject(new Error('not now')))));
    });
    const first = errorOf(() => askForThree(manager, { cpu: 4 }));
    const refuse = await isAsked;
    expect(manager.freeCpus().size).toBe(4);
    const second = manager.acquire({ cpu: 5, name: 'second', policy: 'best-effort' });
    // Its decision comes before the record.
    refuse();
    expect(await first).toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    expect((await second).cpus.size).toBe(5);
  });
});

describe('an abort', () => {
  it('ends the request, and leaves grants and room unchanged', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    const abort = new AbortController();
    mover.on('move', (event) => {
      event.waitUntil(new Promise(() => {}));
      abort.abort(new Error('enough'));
    });
    const error = await errorOf(() => askForThree(manager, { signal: abort.signal }));
    expect(error).toMatchObject({ message: 'enough' });
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
    expect(manager.grants().every(({ upcoming }) => upcoming === null)).toBe(true);
  });

  it('by the close of the manager does the same', async () => {
    const manager = await openTwoNodes();
    const other = await openManager({ topology: manager.topology, stateDir: manager.stateDir });
    onTestFinished(() => other.close());
    const { mover } = await fragment(manager);
    mover.on('move', (event) => {
      event.waitUntil(new Promise(() => {}));
      manager.close();
    });
    const error = await errorOf(() => askForThree(manager));
    expect(error).toMatchObject({ code: 'ERR_MANAGER_CLOSED' });
    expect(cpusByName(other)).toEqual({ mover: '0-1', filler: '4-5' });
  });
});
