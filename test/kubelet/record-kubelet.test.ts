// needs: nothing
// The kubelet's allocations, on record beside the grants.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeletPodHoldings } from '../../lib/entries/kubelet.js';
import { discover } from '../../lib/entries/topology.js';
import { AdmissionError, CpuSet, type Manager, openManager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { guaranteed, simulate, view } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'package:2 [numa(memory=8GB)] core:4 pu:1';
const GIB = 2 ** 30;

const pod = (name: string, cpus?: string, more = {}): KubeletPodHoldings => ({
  namespace: 'default',
  name,
  containers: [{ name: 'main', ...(cpus !== undefined && { cpus }), ...more }],
});

describe('the kubelet’s allocation', () => {
  it('is neither free nor shared, and is so again once it is given back', async () => {
    const manager = await simulate(MACHINE);
    await manager.recordKubelet([pod('web', '4-6')]);
    expect(String(manager.freeCpus())).toBe('0-3,7');
    expect(String(manager.sharedPool())).toBe('0-3,7');
    await manager.recordKubelet([pod('web', '5')]);
    expect(String(manager.freeCpus())).toBe('0-4,6-7');
    await manager.recordKubelet([]);
    expect(String(manager.sharedPool())).toBe('0-7');
    expect(manager.kubelet()).toMatchObject({ pods: [], keeper: { alive: true } });
    expect(await manager.recordKubelet(null)).toBeNull();
    expect(manager.kubelet()).toBeNull();
  });

  it('is reported with the process that keeps it', async () => {
    const manager = await simulate(MACHINE);
    const record = await manager.recordKubelet([pod('web', '4-6'), pod('idle')]);
    expect(manager.kubelet()).toEqual(record);
    expect(manager.status().kubelet).toEqual(record);
    expect(record).toMatchObject({
      pods: [{ uid: null, namespace: 'default', name: 'web' }],
      keeper: { pid: process.pid, alive: true },
    });
    expect(String(record?.cpus)).toBe('4-6');
  });

  it('is visible to other managers of the folder, and to read-only ones', async () => {
    const manager = await simulate(MACHINE);
    await manager.recordKubelet([pod('web', '4-6')]);
    const other = await view(MACHINE, manager.stateDir);
    expect(other.kubelet()).toEqual(manager.kubelet());
    expect(String(other.freeCpus())).toBe('0-3,7');
    await manager.recordKubelet([pod('web', '4')]);
    expect(String(other.freeCpus())).toBe('0-3,5-7');
  });

  it('is never granted, and a rejection for it names the pod that has it', async () => {
    const manager = await simulate(MACHINE);
    await manager.recordKubelet([pod('web', '2-7')]);
    const plan = manager.plan({ containers: [guaranteed('app', { cpu: 4 })] });
    expect(plan).toMatchObject({ admitted: false });
    const error = (await errorOf(() => manager.acquire({ cpu: 4 }))) as AdmissionError;
    expect(error).toBeInstanceOf(AdmissionError);
    expect(error.details.explanation?.text).toContain('held by "default/web of the kubelet": 2-7');
    expect(String((await manager.acquire({ cpu: 1 })).cpus)).toBe('0');
  });

  it('is awaited by a waiting request', async () => {
    const manager = await simulate(MACHINE);
    await manager.recordKubelet([pod('web', '2-7')]);
    const waiting = manager.acquire({ cpu: 4, wait: true });
    await expect.poll(() => manager.status().waiting.length).toBe(1);
    await manager.recordKubelet([pod('web', '6-7')]);
    expect(String((await waiting).cpus)).toBe('0-3');
  });

  it('takes memory from its NUMA nodes, where several share a block ascending', async () => {
    const manager = await simulate(MACHINE);
    const [before] = [manager.memory().map(({ free }) => free)];
    const memory = [{ nodes: [0, 1], type: 'memory', bytes: 9 * GIB }];
    await manager.recordKubelet([pod('web', undefined, { memory })]);
    const total = manager.memory()[0]!.total;
    expect(manager.memory().map(({ free }) => free)).toEqual([0, before[1]! - (9 * GIB - total)]);
    const error = await errorOf(() => manager.acquire({ cpu: 1, memory: '7Gi' }));
    expect(error).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
      details: {
        explanation: {
          text: expect.stringContaining('held by "default/web of the kubelet": 9 GiB of NUMA'),
        },
      },
    });
    await manager.recordKubelet([]);
    expect(manager.memory().map(({ free }) => free)).toEqual(before);
  });

  it('has exclusive devices, identified by PCI address whatever the name of the resource', async () => {
    const manager = await simulate(MACHINE);
    manager.registerDevices('example.com/nic', [
      { id: '0000:01:00.0', numaNodes: [0] },
      { id: '0000:02:00.0', numaNodes: [1] },
    ]);
    const devices = { 'vendor.io/other': ['0000:01:00.0'] };
    await manager.recordKubelet([pod('web', undefined, { devices })]);
    const grant = await manager.acquire({ cpu: 1, resources: { 'example.com/nic': 1 } });
    expect(grant.devices['example.com/nic']?.map(({ id }) => id)).toEqual(['0000:02:00.0']);
    expect((await errorOf(() => manager.acquire({ cpu: 1, resources: { 'example.com/nic': 1 } }))).code).toBe(
      'ERR_INSUFFICIENT_DEVICES',
    );
  });

  it('is not committed again in any order if it is on record already', async () => {
    const manager = await simulate(MACHINE);
    await manager.recordKubelet([pod('a', '1'), pod('b', '2', { devices: { x: ['2', '1'] } })]);
    const generation = manager.generation();
    const { updatedAt } = manager.kubelet()!;
    await manager.recordKubelet([
      pod('b', '2', { devices: { x: ['1', '2'] } }),
      pod('idle'),
      pod('a', undefined, { cpus: [1] }),
    ]);
    expect(manager.generation()).toBe(generation);
    expect(manager.kubelet()!.updatedAt).toBe(updatedAt);
    await manager.recordKubelet([pod('a', '1')]);
    expect(manager.generation()).toBe(generation + 1);
  });

  it.each<[string, unknown, object]>([
    ['no list', 'web', { value: 'web' }],
    ['a pod without a name', [{ ...pod('web'), name: '' }], { value: '' }],
    ['a pod twice', [pod('web', '1'), pod('web', '2')], { value: 'default/web' }],
    ['a CPU in two pods', [pod('a', '1-3'), pod('b', '3-4')], { value: CpuSet.of(3) }],
    ['a container twice', [{ ...pod('a'), containers: [{ name: 'x' }, { name: 'x' }] }], { value: 'x' }],
    ['CPUs that are none', [pod('a', undefined, { cpus: 7 })], { value: 7 }],
    ['no NUMA node', [pod('a', '1', { memory: [{ nodes: [], type: 'memory', bytes: 1 }] })], { value: [] }],
    ['no memory', [pod('a', '1', { memory: [{ nodes: [0], type: 'disk', bytes: 1 }] })], { value: 'disk' }],
    [
      'bytes that are none',
      [pod('a', '1', { memory: [{ nodes: [0], type: 'memory', bytes: -1 }] })],
      { value: -1 },
    ],
    ['an unknown member', [{ ...pod('a'), cpu: 1 }], { value: 'cpu' }],
  ])('is refused if it is %s, and the record stays', async (_, pods, details) => {
    const manager = await simulate(MACHINE);
    await manager.recordKubelet([pod('web', '7')]);
    const error = await errorOf(() => manager.recordKubelet(pods as KubeletPodHoldings[]));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details });
    expect(error.details.valid).toBeDefined();
    expect(String(manager.kubelet()?.cpus)).toBe('7');
  });

  it('has errors that name the invalid part of a list of CPUs', async () => {
    const manager = await simulate(MACHINE);
    expect((await errorOf(() => manager.recordKubelet([pod('web', '1-x')]))).code).toBe('ERR_INVALID_LIST');
  });

  it('may have CPUs and NUMA nodes that the machine has lost, and all shared CPUs', async () => {
    const manager = await simulate(MACHINE);
    const memory = [{ nodes: [7], type: 'memory', bytes: GIB }];
    await manager.recordKubelet([pod('web', '0-99', { memory })]);
    expect([String(manager.sharedPool()), String(manager.freeCpus())]).toEqual(['', '']);
    expect((await errorOf(() => manager.acquire({ cpu: 1 }))).code).toBe('ERR_INSUFFICIENT_CPUS');
    await manager.recordKubelet([]);
    expect(String(manager.sharedPool())).toBe('0-7');
  });
});

describe('a later allocation of the kubelet', () => {
  it('counts: the grant that has it stays on record, and is flagged until it is given back', async () => {
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 2, name: 'mine' });
    const other = await manager.acquire({ cpu: 1 });
    expect(String(grant.cpus)).toBe('0-1');
    await manager.recordKubelet([pod('web', '1,4'), pod('db', '5')]);
    const flags = [
      {
        code: 'CPU_TAKEN',
        message: 'the kubelet gave CPU 1 to default/web',
        cpus: CpuSet.of(1),
        pods: ['default/web'],
      },
    ];
    expect(grant.flags()).toEqual(flags);
    expect(manager.grants().map((each) => each.flags)).toEqual([flags, []]);
    expect(String(grant.cpus)).toBe('0-1');
    await grant.release();
    expect(String(manager.freeCpus())).toBe('0,3,6-7');
    await manager.recordKubelet([]);
    expect(other.flags()).toEqual([]);
  });

  it('goes first when the grant shrinks, as long as others are left', async () => {
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 4 });
    await manager.recordKubelet([pod('web', '0,2')]);
    await grant.resize({ cpu: 2 });
    expect(String(grant.cpus)).toBe('1,3');
    await manager.recordKubelet([pod('web', '0-3')]);
    await grant.resize({ cpu: 1 });
    expect(grant.cpus.isSubsetOf(CpuSet.of(1, 3))).toBe(true);
  });

  it('is reported by the change event', async () => {
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 2 });
    const flagged = new Promise<readonly { uid: string }[]>((resolve) => {
      manager.on('change', (change) => change.flagged.length > 0 && resolve(change.flagged));
    });
    await manager.recordKubelet([pod('web', '1')]);
    expect(await flagged).toMatchObject([{ uid: grant.uid, flags: [{ code: 'CPU_TAKEN' }] }]);
  });

  it('flags memory if less is left than is granted', async () => {
    const manager = await simulate(MACHINE);
    const grant = await manager.acquire({ cpu: 1, memory: '3Gi' });
    const taking = (bytes: number) => [
      pod('web', undefined, { memory: [{ nodes: [0], type: 'memory', bytes }] }),
    ];
    await manager.recordKubelet(taking(4 * GIB));
    expect(grant.flags()).toEqual([]);
    await manager.recordKubelet(taking(5 * GIB));
    expect(grant.flags()).toMatchObject([
      { code: 'MEMORY_TAKEN', resource: 'memory', nodes: [0], booked: 3 * GIB, pods: ['default/web'] },
    ]);
    expect(manager.memory()[0]!.free).toBe(0);
  });

  it('flags a device', async () => {
    const manager = await simulate(MACHINE);
    manager.registerDevices('example.com/nic', [{ id: 'eth0' }, { id: 'eth1' }]);
    const grant = await manager.acquire({ cpu: 1, resources: { 'example.com/nic': 1 } });
    await manager.recordKubelet([
      pod('web', undefined, { devices: { 'example.com/nic': ['eth0', 'eth1'] } }),
    ]);
    expect(grant.flags()).toMatchObject([
      { code: 'DEVICE_TAKEN', resource: 'example.com/nic', devices: ['eth0'], pods: ['default/web'] },
    ]);
  });
});

// ---- laws

const cpuList = fc.uniqueArray(fc.nat(7), { maxLength: 5 });
const step = fc.oneof(
  fc.record({ kind: fc.constant('kubelet' as const), a: cpuList, b: cpuList }),
  fc.record({ kind: fc.constant('acquire' as const), cpu: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('resize' as const), at: fc.nat(), cpu: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constant('release' as const), at: fc.nat() }),
);

async function expectPartition(manager: Manager, all: CpuSet): Promise<void> {
  const kubelet = manager.kubelet()?.cpus ?? CpuSet.EMPTY;
  const granted = manager.grants().map(({ cpus }) => cpus);
  const exclusive = granted.reduce((sum, cpus) => sum.union(cpus), kubelet);
  // No grant has a CPU of another, and who runs in the shared pool has none of either.
  expect(granted.reduce((sum, cpus) => sum + cpus.size, 0)).toBe(
    granted.reduce((sum, cpus) => sum.union(cpus), CpuSet.EMPTY).size,
  );
  expect(manager.sharedPool()).toEqual(all.difference(exclusive));
  expect(manager.freeCpus()).toEqual(all.difference(exclusive));
  for (const grant of manager.grants()) {
    const taken = grant.cpus.intersection(kubelet);
    const flagged = grant.flags.flatMap((flag) => (flag.code === 'CPU_TAKEN' ? [flag.cpus] : []));
    expect(flagged).toEqual(taken.isEmpty ? [] : [taken]);
  }
}

it('grants, the kubelet’s CPUs and the shared pool are all CPUs after every step, and no CPU of the kubelet is granted', async () => {
  const topology = await discover({ synthetic: 'package:2 core:4 pu:1' });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const manager = await openManager({ topology });
      for (const each of steps) {
        const kubelet = manager.kubelet()?.cpus ?? CpuSet.EMPTY;
        const before = new Map(manager.grants().map(({ uid, cpus }) => [uid, cpus]));
        const uids = [...before.keys()];
        const one = 'at' in each && uids.length > 0 ? manager.grant(uids[each.at % uids.length]!) : undefined;
        if (each.kind === 'kubelet') {
          const a = CpuSet.from(each.a);
          const b = CpuSet.from(each.b).difference(a);
          await manager.recordKubelet([pod('a', String(a)), pod('b', String(b))]);
        } else {
          // Where there is no room: then nothing changes.
          await (each.kind === 'acquire'
            ? manager.acquire({ cpu: each.cpu })
            : each.kind === 'resize'
              ? one?.resize({ cpu: each.cpu })
              : one?.release()
          )?.catch((error) => expect(error).toBeInstanceOf(AdmissionError));
          for (const { uid, cpus } of manager.grants()) {
            const news = cpus.difference(before.get(uid) ?? CpuSet.EMPTY);
            expect(news.intersects(kubelet)).toBe(false);
          }
        }
        await expectPartition(manager, topology.cpus);
      }
      manager.close();
    }),
    { numRuns: budget({ all: 500, usual: 50 }) },
  );
});

it('a private folder and a simulated machine may have such a record', async () => {
  const topology = await discover({ synthetic: MACHINE });
  const manager = await openManager({ topology, stateDir: makeStateDir() });
  await manager.recordKubelet([pod('web', '1')]);
  manager.close();
  // With the manager the only process ends that has kept it.
  const next = await simulate(topology, { stateDir: manager.stateDir });
  expect(next.kubelet()).toMatchObject({ keeper: { alive: false } });
  expect(String(next.kubelet()?.cpus)).toBe('1');
});
