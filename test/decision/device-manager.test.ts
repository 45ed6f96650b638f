// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  DeviceSpec,
  PreferredAllocation,
  PreferredAllocationRequest,
} from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const GPU = 'example.com/gpu';
const NIC = 'example.com/nic';

const twoNodes = () => machineOf([0, 1].map(() => ({ cpus: 8, memory: 8 * GI })));

/** Devices, with the given number near each node, numbered consecutively. */
const near = (name: string, ...counts: number[]): DeviceSpec[] => {
  let id = 0;
  return counts.flatMap((count, node) =>
    Array.from({ length: count }, () => ({ id: `${name}${id++}`, numaNodes: [node] })),
  );
};

/** Requests only devices: any class of pod gets them. */
const asking = (devices: Record<string, number>) => ({ containers: [{ name: 'main', limits: devices }] });

async function idsOf(manager: Manager, devices: Record<string, number>, options = {}): Promise<string[]> {
  const pod = await manager.admit(asking(devices), { owner: 'persistent', ...options });
  return Object.values(pod.container('main').devices).flatMap((list) => list.map(({ id }) => id));
}

describe('devices', () => {
  it('come from the NUMA node of the CPUs, as far as it has any', async () => {
    const manager = await simulate(await twoNodes(), { policy: 'single-numa-node' });
    manager.registerDevices(GPU, near('gpu', 1, 2));
    const pod = await manager.admit({ containers: [guaranteed('main', { cpu: 2, [GPU]: 2 })] });
    expect(pod.container('main').devices[GPU]).toEqual([
      { id: 'gpu1', nodes: [1] },
      { id: 'gpu2', nodes: [1] },
    ]);
    expect(String(pod.container('main').cpus)).toBe('8-9');
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu0']);
    expect(await errorOf(() => idsOf(manager, { [GPU]: 1 }, { policy: 'none' }))).toMatchObject({
      code: 'ERR_INSUFFICIENT_DEVICES',
      message: expect.not.stringContaining('unhealthy'),
      details: { reason: 'UnexpectedAdmissionError', value: 1, valid: 'none now' },
    });
    await pod.release();
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu1']);
  });

  it('without a NUMA node are taken last, and have no preference if there are no others', async () => {
    const manager = await simulate(await twoNodes());
    manager.registerDevices(GPU, [{ id: 'a' }, ...near('gpu', 0, 1), { id: 'b', numaNodes: [] }]);
    expect(await idsOf(manager, { [GPU]: 2 })).toEqual(['a', 'gpu0']);
    manager.registerDevices(NIC, [{ id: 'eth0' }, { id: 'eth1', numaNodes: null }]);
    const plan = manager.plan(asking({ [NIC]: 1 }), { policy: 'single-numa-node' });
    expect(plan.containers[0]?.devices[NIC]).toEqual([{ id: 'eth0', nodes: null }]);
    expect(plan.hints[0]?.offered[0]?.hints.isAny).toBe(true);
  });

  it('are shared by init containers and the later ones of a pod, but not by its sidecars', async () => {
    const manager = await simulate(await twoNodes());
    manager.registerDevices(GPU, near('gpu', 2, 2));
    const limits = { [GPU]: 2 };
    const pod = await manager.admit({
      initContainers: [
        { name: 'check', limits },
        { name: 'proxy', restartPolicy: 'Always', limits: { [GPU]: 1 } },
      ],
      containers: [{ name: 'main', limits }],
    });
    const ids = (name: string) => pod.container(name).devices[GPU]!.map(({ id }) => id);
    expect([ids('check'), ids('proxy'), ids('main')]).toEqual([['gpu0', 'gpu1'], ['gpu0'], ['gpu1', 'gpu2']]);
    expect(manager.grants()[0]!.devices[GPU]!.map(({ id }) => id)).toEqual(['gpu0', 'gpu1', 'gpu2']);
  });

  it('that become unhealthy are no longer granted, and granted ones stay', async () => {
    const manager = await simulate(await twoNodes(), { policy: 'restricted' });
    const gpus = near('gpu', 2, 1);
    manager.registerDevices(GPU, gpus);
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu0']);
    // The last one is near no node.
    manager.registerDevices(GPU, [
      ...gpus.map((gpu) => ({ ...gpu, healthy: gpu.id === 'gpu2' })),
      { id: 'lost', healthy: false },
    ]);
    // They still count for what a node could ever have.
    const { explanation, reason } = manager.plan(asking({ [GPU]: 2 }));
    expect(reason).toBe('TopologyAffinityError');
    expect(explanation!.resources[0]).toMatchObject({
      resource: GPU,
      nodes: [
        { node: 0, free: 0, possible: 2 },
        { node: 1, free: 1, possible: 1 },
      ],
      unusable: 'gpu0, gpu1, lost',
    });
    expect(explanation!.text).toMatch(/unhealthy: gpu0, gpu1, lost\n.*held by ".*": gpu0/);
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu2']);
    expect(manager.grants().flatMap(({ devices }) => devices[GPU]!.map(({ id }) => id))).toEqual([
      'gpu0',
      'gpu2',
    ]);
  });

  it('of another opener stay unchanged if this one does not know them, and are granted once among all', async () => {
    const knowing = await simulate(await twoNodes());
    knowing.registerDevices(GPU, near('gpu', 1, 1));
    const { topology, stateDir } = knowing;
    expect(await idsOf(knowing, { [GPU]: 1 })).toEqual(['gpu0']);
    const other = await openManager({ topology, stateDir, devices: { [NIC]: near('eth', 1, 1) } });
    await other.admit({ containers: [guaranteed('main', { cpu: 2, [NIC]: 1 })] }, { owner: 'persistent' });
    expect(knowing.grants().map(({ devices }) => Object.keys(devices))).toEqual([[GPU], [NIC]]);
    other.registerDevices(GPU, near('gpu', 1, 1));
    expect(await idsOf(other, { [GPU]: 1 })).toEqual(['gpu1']);
    expect((await errorOf(() => idsOf(knowing, { [GPU]: 1 }))).code).toMatch(/^ERR_(TOPOLOGY|INSUFFICIENT)/);
  });

  it('that are one PCI device are granted once, whatever the names of the resources', async () => {
    const nic = (id: string) => [{ id, numaNodes: [0] }];
    const manager = await simulate(await twoNodes());
    manager.registerDevices(NIC, [...nic('0000:3b:00.0'), ...nic('0000:3b:00.1')]);
    manager.registerDevices('example.com/fast', nic('0000:3b:00.0'));
    const one = await manager.admit(asking({ [NIC]: 1 }));
    const fast = () => manager.admit(asking({ 'example.com/fast': 1 }), { policy: 'none' });
    expect((await errorOf(fast)).code).toBe('ERR_INSUFFICIENT_DEVICES');
    await one.release();
    const both = { [NIC]: 1, 'example.com/fast': 1 };
    const pod = await manager.admit(asking({ ...both, [NIC]: 1 }), { policy: 'none' }).catch(() => undefined);
    const ids = Object.values(pod?.container('main').devices ?? {}).flatMap((list) =>
      list.map(({ id }) => id),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('are refused in impossible amounts, with a code', async () => {
    const manager = await simulate(await twoNodes());
    manager.registerDevices(GPU, near('gpu', 1, 1));
    const { code } = await errorOf(() => manager.admit(asking({ [GPU]: 2 ** 40 }), { policy: 'restricted' }));
    expect(code).toBe('ERR_TOPOLOGY_AFFINITY');
    for (const resource of [null, Symbol('x'), 'gpu']) {
      expect((await errorOf(() => manager.registerDevices(resource as never, []))).code).toBe(
        'ERR_INVALID_OPTION',
      );
    }
    const odd = [{ id: 'a', numaNodes: { [Symbol.iterator]: 1 } }];
    expect((await errorOf(() => manager.registerDevices(GPU, odd as never))).code).toBe('ERR_INVALID_OPTION');
    const devices = new Map([[GPU, []]]);
    expect((await errorOf(() => openManager({ devices: devices as never }))).code).toBe('ERR_INVALID_OPTION');
  });

  it('without a manager cause a warning, unless a custom provider may have them', async () => {
    const manager = await simulate(await twoNodes());
    const warnings = [{ code: 'RESOURCE_UNKNOWN', resource: GPU, message: expect.stringContaining(GPU) }];
    expect(manager.plan(asking({ [GPU]: 1, [NIC]: 0 })).warnings).toEqual(warnings);
    expect((await manager.admit(asking({ [GPU]: 1 }))).warnings).toEqual(warnings);
    manager.registerDevices(GPU, []);
    expect((await errorOf(() => manager.admit(asking({ [GPU]: 1 })))).code).toBe('ERR_INSUFFICIENT_DEVICES');
    manager.addHintProvider({ name: 'other', hints: () => null, allocate() {}, release() {} });
    expect(manager.plan(asking({ [NIC]: 1 })).warnings).toEqual([]);
    // An acquire requires the devices that it names.
    const strict = await simulate(await twoNodes());
    const acquire = (name: string) => errorOf(() => strict.acquire({ cpu: 1, resources: { [name]: 1 } }));
    expect((await acquire(NIC)).code).toBe('ERR_INVALID_OPTION');
    expect((await acquire('constructor')).code).toBe('ERR_INVALID_OPTION');
    const none = await simulate(await twoNodes(), { memoryManagerPolicy: 'None' });
    expect((await errorOf(() => none.acquire({ cpu: 1, memory: '1Gi' }))).code).toBe('ERR_INVALID_OPTION');
  });

  it('are all or nothing with CPUs and memory, and in the kubelet’s order', async () => {
    const manager = await simulate(await twoNodes(), { policy: 'single-numa-node' });
    manager.registerDevices(GPU, near('gpu', 0, 2));
    manager.registerDevices(NIC, near('eth', 1, 1));
    const pod = (memory: string) => ({
      containers: [guaranteed('main', { cpu: 2, memory, [GPU]: 1, [NIC]: 1 })],
    });
    const admitted = await manager.admit(pod('6Gi'), { owner: 'persistent' });
    const { cpus, memory, devices } = admitted.container('main');
    expect([String(cpus), memory[0]!.nodes, devices[GPU]![0]!.id, devices[NIC]![0]!.id]).toEqual([
      '8-9',
      [1],
      'gpu0',
      'eth1',
    ]);
    expect(manager.plan(pod('1Gi')).hints[0]!.offered.map(({ resource }) => resource)).toEqual([
      GPU,
      NIC,
      'cpu',
      'memory',
    ]);
    // Node 1 has a device of each kind, but not the memory.
    const before = [manager.memory(), manager.grants(), String(manager.freeCpus())];
    expect((await errorOf(() => manager.admit(pod('6Gi')))).code).toBe('ERR_TOPOLOGY_AFFINITY');
    expect([manager.memory(), manager.grants(), String(manager.freeCpus())]).toEqual(before);
  });
});

describe('the preferred allocation', () => {
  // Eight GPUs, linked in pairs.
  const PAIRS = [
    ['gpu0', 'gpu3'],
    ['gpu1', 'gpu2'],
    ['gpu4', 'gpu7'],
    ['gpu5', 'gpu6'],
  ];
  const linked: PreferredAllocation = ({ available, mustInclude, size }) => {
    const fits = (ids: readonly string[]) =>
      ids.every((id) => available.includes(id)) && mustInclude.every((id) => ids.includes(id));
    if (size === 1) return null;
    if (size === 2) return PAIRS.find(fits) ?? [];
    return PAIRS.flat()
      .filter((id) => available.includes(id))
      .slice(0, size);
  };

  it('gives the best pairs of eight linked GPUs', async () => {
    const manager = await simulate(await twoNodes(), { policy: 'single-numa-node' });
    manager.registerDevices(GPU, near('gpu', 4, 4), { preferredAllocation: linked });
    const pairs = [];
    for (let i = 0; i < 4; i++) pairs.push(await idsOf(manager, { [GPU]: 2 }));
    expect(pairs).toEqual(PAIRS);
  });

  it('leads to the NUMA node with a good choice, and away from one without', async () => {
    const manager = await simulate(await twoNodes(), { policy: 'single-numa-node' });
    manager.registerDevices(GPU, near('gpu', 4, 4), { preferredAllocation: linked });
    // One of each pair of node 0 is taken: 2 and 3 are left there, which are not linked.
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu0']);
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu1']);
    const { hints } = manager.plan(asking({ [GPU]: 2 }));
    expect(hints[0]!.offered[0]!.hints.toJSON()).toEqual([
      { nodes: '0', preferred: false },
      { nodes: '1', preferred: true },
      { nodes: '0-1', preferred: false },
    ]);
    expect(await idsOf(manager, { [GPU]: 2 })).toEqual(['gpu4', 'gpu7']);
    expect(await idsOf(manager, { [GPU]: 2 })).toEqual(['gpu5', 'gpu6']);
    // No good choice is left: it does not count, and does not block.
    expect(await idsOf(manager, { [GPU]: 2 })).toEqual(['gpu2', 'gpu3']);
  });

  it('gets the devices that it must include: those of init containers, and aligned ones', async () => {
    const asked: PreferredAllocationRequest[] = [];
    const manager = await simulate(await twoNodes(), { policy: 'best-effort' });
    manager.registerDevices(GPU, near('gpu', 3, 3), {
      preferredAllocation: (request) => {
        asked.push(request);
        return [...new Set([...request.mustInclude, ...[...request.available].reverse()])].slice(
          0,
          request.size,
        );
      },
    });
    const pod = await manager.admit({
      initContainers: [{ name: 'check', limits: { [GPU]: 1 } }],
      containers: [{ name: 'main', limits: { [GPU]: 2 } }],
    });
    const ids = (name: string) => pod.container(name).devices[GPU]!.map(({ id }) => id);
    expect([ids('check'), ids('main')]).toEqual([['gpu2'], ['gpu1', 'gpu2']]);
    expect(asked.at(-1)).toEqual({
      resource: GPU,
      available: ['gpu0', 'gpu1', 'gpu2'],
      mustInclude: ['gpu2'],
      size: 2,
    });
    await pod.release();
    expect(await idsOf(manager, { [GPU]: 4 })).toEqual(['gpu2', 'gpu3', 'gpu4', 'gpu5']);
  });

  it('of init containers count as available for later ones, even in the error', async () => {
    const manager = await simulate(await twoNodes(), { policy: 'none' });
    manager.registerDevices(GPU, near('gpu', 3, 0));
    const container = (name: string, count: number) => ({ name, limits: { [GPU]: count } });
    const spec = { initContainers: [container('first', 2)], containers: [container('main', 4)] };
    const { message } = await errorOf(() => manager.admit(spec));
    expect(message).toContain(`4 devices of ${GPU} requested: 3 free`);
  });

  it('may choose any available devices, and no others', async () => {
    const endless = function* () {
      for (;;) yield 'gpu0';
    };
    const late = async () => {
      throw new Error('too late');
    };
    const wrong: unknown[] = [
      endless,
      late,
      [1n, { toJSON: null }],
      ['gpu9'],
      ['gpu0', 'gpu0'],
      ['gpu0', 'gpu1', 'gpu2'],
      3,
      Promise.resolve([]),
      undefined,
    ];
    for (const answer of wrong) {
      const manager = await simulate(await twoNodes());
      manager.registerDevices(GPU, near('gpu', 3, 3), {
        preferredAllocation: () => (typeof answer === 'function' ? answer() : answer) as never,
      });
      const error = await errorOf(() => idsOf(manager, { [GPU]: 2 }));
      expect(error).toMatchObject({
        code: 'ERR_PREFERRED_ALLOCATION',
        details: { value: GPU, reason: 'UnexpectedAdmissionError' },
      });
      expect(manager.grants()).toEqual([]);
    }
    const manager = await simulate(await twoNodes());
    const failing = () => {
      throw new Error('no driver');
    };
    manager.registerDevices(GPU, near('gpu', 3, 3), { preferredAllocation: failing });
    expect((await errorOf(() => idsOf(manager, { [GPU]: 2 }))).message).toContain('no driver');
    expect(
      await errorOf(() => manager.registerDevices(GPU, [], { preferredAllocation: 3 as never })),
    ).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
  });

  it('must not ask for a plan itself, and registers devices for the next decision only', async () => {
    const manager = await simulate(await twoNodes());
    let asked = 0;
    const preferredAllocation: PreferredAllocation = ({ available, size }) => {
      asked += 1;
      expect(manager.plan(asking({ [GPU]: 1 })).code).toBe('ERR_PREFERRED_ALLOCATION');
      manager.registerDevices(GPU, near('other', 2, 2));
      return available.slice(0, size);
    };
    manager.registerDevices(GPU, near('gpu', 2, 2), { preferredAllocation });
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['gpu0']);
    expect(asked).toBeGreaterThan(0);
    expect(await idsOf(manager, { [GPU]: 1 })).toEqual(['other0']);
  });

  it('is not asked about more sets of NUMA nodes than others can wait for', async () => {
    const topology = await machineOf(Array.from({ length: 24 }, () => ({ cpus: 1, memory: GI })));
    const manager = await simulate(topology);
    let asked = 0;
    const preferredAllocation = () => {
      asked += 1;
      return null;
    };
    manager.registerDevices(GPU, near('gpu', ...topology.numaNodes.map(() => 1)), { preferredAllocation });
    expect(await idsOf(manager, { [GPU]: 6 })).toHaveLength(6);
    expect(asked).toBeLessThanOrEqual(2);
    expect(await idsOf(manager, { [GPU]: 1 })).toHaveLength(1);
    expect(asked).toBeGreaterThanOrEqual(18);
  });

  it('whatever it chooses, the requested number is granted, aligned ones first, none twice', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat(1), { maxLength: 2 }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 5 }),
        fc.infiniteStream(fc.nat()),
        async (places, counts, choices) => {
          const manager = await openManager({ topology: await twoNodes() });
          const gpus = places.map((nodes, i) => ({ id: `gpu${i}`, numaNodes: [...new Set(nodes)] }));
          const pick: PreferredAllocation = ({ available, mustInclude, size }) => {
            const others = available.filter((id) => !mustInclude.includes(id));
            const random = others.sort(() => (choices.next().value % 3) - 1);
            return [...mustInclude, ...random].slice(
              0,
              choices.next().value % 2 ? size : choices.next().value % (size + 1),
            );
          };
          manager.registerDevices(GPU, gpus, { preferredAllocation: pick });
          const given: string[] = [];
          for (const count of counts) {
            const free = gpus.length - given.length;
            const ids = await idsOf(manager, { [GPU]: count }).catch((error) => {
              expect(error.code).toBe('ERR_INSUFFICIENT_DEVICES');
              expect(free).toBeLessThan(count);
              return [];
            });
            if (ids.length > 0) expect(ids).toHaveLength(count);
            given.push(...ids);
          }
          expect(new Set(given).size).toBe(given.length);
        },
      ),
      { numRuns: budget({ all: 1_000, usual: 70 }) },
    );
  });
});
