// needs: agents
// Grants of one process that grow and shrink by themselves.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Grant, type GrantEvents, openManager } from '../../lib/index.js';
import { changed } from '../support/changed.js';
import { settled, sizesOf } from '../support/changing-grants.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

type ResizeEvent = GrantEvents['resize'][0];

const EIGHT = 'package:2 [numa(memory=8GiB)] core:4 pu:1';
const SMT = 'package:1 core:4 pu:2';
const TO_ALL = { cpu: { min: 2, max: 8 }, name: 'elastic' } as const;

const open = (machine = EIGHT, options: object = {}) => simulate(machine, options);

const resized = (grant: Grant) => new Promise<ResizeEvent>((resolve) => grant.once('resize', resolve));

describe('a grant of a range of CPUs', () => {
  it('has all free CPUs except one, which stays shared', async () => {
    const manager = await open();
    const grant = await manager.acquire(TO_ALL);
    expect(grant.cpus.size).toBe(7);
    expect(manager.sharedPool().size).toBe(1);
    expect(grant.elastic).toEqual({ min: 2, max: 8, weight: 100 });
  });

  it('never exceeds its maximum', async () => {
    const manager = await open();
    expect((await manager.acquire({ cpu: { min: 1, max: 3 } })).cpus.size).toBe(3);
  });

  it('gives a request as many CPUs as it lacks, and reports so', async () => {
    const manager = await open();
    const grant = await manager.acquire(TO_ALL);
    const resizing = resized(grant);
    const other = await manager.acquire({ cpu: 3, name: 'other' });
    expect(sizesOf(manager)).toEqual({ elastic: 4, other: 3 });
    const { before, cpus, nodes, ...event } = await resizing;
    expect(event).toMatchObject({ uid: grant.uid, for: other.uid });
    expect([before.size, String(cpus)]).toEqual([7, String(grant.cpus)]);
    expect(String(nodes)).toBe(String(grant.numaNodes));
    expect(grant.cpus.intersects(other.cpus)).toBe(false);
  });

  it('is named in a plan as making room, like in an admission', async () => {
    const manager = await open();
    const grant = await manager.acquire(TO_ALL);
    const pod = { name: 'other', containers: [{ name: 'main', limits: { cpu: 3, memory: '1Gi' } }] };
    const { admitted, repacking } = manager.plan(pod);
    expect(admitted).toBe(false);
    const [move] = repacking!.moves;
    expect([move!.uid, move!.before.size, move!.cpus.size]).toEqual([grant.uid, 7, 4]);
    expect(repacking!.text).toMatch(/^would be admitted after shrinking "elastic" \(/);
    await manager.admit(pod);
    expect(String(grant.cpus)).toBe(String(move!.cpus));
  });

  it('does not appear in a plan that it makes no room for', async () => {
    const manager = await open();
    await manager.acquire(TO_ALL);
    const pod = { name: 'other', containers: [{ name: 'main', limits: { cpu: 7, memory: '1Gi' } }] };
    expect(manager.plan(pod).repacking).toBe(null);
  });

  it('grows again once there is room', async () => {
    const manager = await open();
    const grant = await manager.acquire(TO_ALL);
    const other = await manager.acquire({ cpu: 3 });
    const before = grant.cpus;
    const event = new Promise<ResizeEvent>((resolve) =>
      grant.on('resize', (event) => event.for === null && resolve(event)),
    );
    await other.release();
    expect((await event).cpus.size).toBe(7);
    expect(before.isSubsetOf(grant.cpus)).toBe(true);
  });

  it('never falls below its minimum: the request is rejected, and nothing changes', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: { min: 4, max: 8 } });
    const before = String(grant.cpus);
    expect(await errorOf(() => manager.acquire({ cpu: 4 }))).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
    expect(manager.grants().map(({ cpus }) => String(cpus))).toEqual([before]);
  });

  it('makes room for a waiting request', async () => {
    const manager = await open();
    await manager.acquire(TO_ALL);
    await manager.acquire({ cpu: 4, name: 'waiting', wait: true });
    expect(sizesOf(manager)).toEqual({ elastic: 3, waiting: 4 });
  });

  it('gives up CPUs of one NUMA node for a request that needs them there', async () => {
    const manager = await open();
    const grant = await manager.acquire(TO_ALL);
    const other = await manager.acquire({ cpu: 4, policy: 'single-numa-node' });
    expect(other.numaNodes.size).toBe(1);
    expect(grant.cpus.size).toBe(3);
  });

  it('gives up what a request needs on one NUMA node, and others give up nothing in vain', async () => {
    const manager = await open();
    const aligned = { policy: 'single-numa-node' } as const;
    await manager.acquire({ cpu: { min: 1, max: 4 }, name: 'first', ...aligned });
    await manager.acquire({ cpu: { min: 1, max: 4 }, name: 'second', ...aligned });
    expect(sizesOf(manager)).toEqual({ first: 4, second: 3 });
    await manager.acquire({ cpu: 3, name: 'other', ...aligned });
    expect(sizesOf(manager)).toEqual({ first: 1, second: 3, other: 3 });
  });

  it('makes room for pods', async () => {
    const manager = await open();
    await manager.acquire(TO_ALL);
    const limits = { cpu: 3 };
    const pod = await manager.admit({
      uid: 'pod-1',
      qosClass: 'Guaranteed',
      containers: [{ name: 'app', limits }],
    });
    expect(pod.uid).toBe('pod-1');
    expect(manager.grants().map(({ cpus }) => cpus.size)).toEqual([4, 3]);
  });

  it('leaves the booking of mixed grants in the shared pool', async () => {
    const manager = await open();
    const mixed = await manager.acquire({ cpu: 1.5, mixed: true, name: 'mixed' });
    await manager.acquire(TO_ALL);
    const second = await manager.acquire({ cpu: 1.7, mixed: true, name: 'second' });
    expect(sizesOf(manager)).toEqual({ mixed: 1, elastic: 4, second: 1 });
    expect(mixed.mixed + second.mixed).toBeLessThanOrEqual(manager.sharedPool().size);
  });

  it('keeps its booked memory', async () => {
    const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
    const manager = await openManager({ topology, stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ ...TO_ALL, memory: '2Gi', policy: 'single-numa-node' });
    const before = JSON.stringify(grant.memory);
    expect(grant.cpus.size).toBe(4);
    await manager.acquire({ cpu: 5 });
    expect(grant.cpus.size).toBe(2);
    expect(JSON.stringify(grant.memory)).toBe(before);
  });
});

describe('the policy of a grant of a range', () => {
  it('makes the grant shrink and grow in whole cores', async () => {
    const manager = await open(SMT, { cpuManagerPolicyOptions: { 'full-pcpus-only': true } });
    const grant = await manager.acquire(TO_ALL);
    expect(grant.cpus.size).toBe(6);
    const other = await manager.acquire({ cpu: 2, name: 'other' });
    expect(sizesOf(manager)).toEqual({ elastic: 4, other: 2 });
    expect(manager.topology.wholeCores(grant.cpus).equals(grant.cpus)).toBe(true);
    await other.release();
    await settled(manager, { elastic: 6 });
    expect(manager.topology.wholeCores(grant.cpus).equals(grant.cpus)).toBe(true);
  });

  it('keeps it on one NUMA node, and another gets the rest of its share', async () => {
    const manager = await open();
    const other = await manager.acquire({ cpu: 2, name: 'other', policy: 'single-numa-node' });
    const options = { name: 'aligned', policy: 'single-numa-node', weight: 1000 } as const;
    const aligned = await manager.acquire({ ...TO_ALL, ...options });
    expect([aligned.cpus.size, aligned.numaNodes.size]).toEqual([4, 1]);
    await manager.acquire({ cpu: { min: 1, max: 8 }, name: 'free' });
    expect(sizesOf(manager)).toEqual({ other: 2, aligned: 4, free: 1 });
    await other.release();
    await settled(manager, { aligned: 4, free: 3 });
    expect(aligned.numaNodes.size).toBe(1);
  });
});

describe('several grants of ranges', () => {
  it('share by weight as soon as the second comes', async () => {
    const manager = await open('package:2 core:5 pu:1');
    await manager.acquire({ cpu: { min: 1, max: 9 }, name: 'light' });
    await manager.acquire({ cpu: { min: 1, max: 9 }, weight: 200, name: 'heavy' });
    await settled(manager, { light: 3, heavy: 6 });
  });

  // Their uids decide which of them has the odd CPU.
  it.each([1, 2, 3, 4])(
    'get room made only for their minimum, and the rest by their shares (%i)',
    async () => {
      const manager = await open('package:2 core:5 pu:1');
      const first = await manager.acquire({ cpu: { min: 1, max: 9 }, name: 'first' });
      const second = await manager.acquire({ cpu: { min: 2, max: 9 }, name: 'second' });
      expect(sizesOf(manager)).toEqual({ first: 7, second: 2 });
      await changed(manager, () => Math.abs(first.cpus.size - second.cpus.size) === 1);
      expect(first.cpus.size + second.cpus.size).toBe(9);
    },
  );
});

describe('the options of a range', () => {
  it.each([
    ['cpu.min', { cpu: { max: 4 } }],
    ['cpu.max', { cpu: { min: 2 } }],
    ['cpu.max', { cpu: { min: 4, max: 2 } }],
    ['cpu.min', { cpu: { min: 1.5, max: 2 } }],
    ['weight', { cpu: { min: 1, max: 2 }, weight: 0 }],
    ['weight', { cpu: { min: 1, max: 2 }, weight: 1.5 }],
    ['weight', { cpu: 2, weight: 100 }],
    ['cpu', { cpu: { min: 1, max: 2 }, owner: 'persistent' }],
    ['parts', { cpu: { min: 2, max: 4 }, parts: { main: 1 } }],
    ['mixed', { cpu: { min: 2, max: 4 }, mixed: true }],
  ])('are refused with the name of the wrong one: %s %o', async (option, options) => {
    const manager = await open();
    const error = await errorOf(() => manager.acquire(options as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option } });
    expect(manager.grants()).toEqual([]);
  });

  it('allow no resize of CPUs, but one of memory', async () => {
    const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
    const manager = await openManager({ topology, stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire(TO_ALL);
    const error = await errorOf(() => grant.resize({ cpu: 3 }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'cpu' } });
    await grant.resize({ memory: '1Gi' });
    expect(grant.memory.map(({ bytes }) => bytes)).toEqual([GI]);
    expect(grant.cpus.size).toBe(7);
  });
});

describe('the record of a grant of a range', () => {
  it('is read by others, and shown', async () => {
    const manager = await open();
    await manager.acquire({ ...TO_ALL, weight: 7 });
    const elastic = { min: 2, max: 8, weight: 7 };
    expect(JSON.parse(JSON.stringify(manager.grants()))).toMatchObject([{ elastic }]);
    expect(manager.status().grants).toMatchObject([{ elastic }]);
    const { topology, stateDir } = manager;
    const view = await openManager({ topology, stateDir, readOnly: true });
    onTestFinished(() => view.close());
    expect(view.grants()).toMatchObject([{ elastic }]);
  });

  it('omits ranges if all grants have fixed numbers', async () => {
    const manager = await open();
    const grant = await manager.acquire({ cpu: 2 });
    await grant.resize({ cpu: 3 });
    const text = ['state.json', 'journal'].map((name) => {
      try {
        return readFileSync(join(manager.stateDir, name), 'utf8');
      } catch {
        return '';
      }
    });
    expect(text.join('')).toContain(grant.uid);
    expect(text.join('')).not.toContain('elastic');
  });
});
