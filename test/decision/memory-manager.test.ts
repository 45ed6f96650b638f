// needs: nothing
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, type ManagerOptions, openManager, type Pod } from '../../lib/index.js';
import { cpuTimeOf } from '../support/cpu-time.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { GI, MI, machineOf, type NodeSpec } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const HUGE = 'hugepages-2Mi';
const NODE: NodeSpec = { cpus: 4, memory: 8 * GI };

const nodesWith = (count: number, more: Partial<NodeSpec> = {}) =>
  machineOf(Array.from({ length: count }, () => ({ ...NODE, ...more })));
const pod = (memory: string, more: Record<string, number | string> = {}) => ({
  containers: [guaranteed('main', { cpu: '500m', memory, ...more })],
});
const admit = (manager: Manager, spec: object, options = {}): Promise<Pod> =>
  manager.admit(spec as never, { owner: 'persistent', ...options });
const placeOf = (admitted: Pod, name = 'main') =>
  admitted.container(name).memory.map(({ nodes }) => nodes.join());
const freeOf = (manager: Manager, type = 'memory') =>
  manager
    .memory()
    .filter((table) => table.type === type)
    .map(({ free }) => free);

describe('memory', () => {
  it('is booked on the fewest NUMA nodes that have it, and given back', async () => {
    const manager = await simulate(await nodesWith(3));
    const small = await admit(manager, pod('6Gi'));
    expect(placeOf(small)).toEqual(['0']);
    expect(placeOf(await admit(manager, pod('6Gi')))).toEqual(['1']);
    expect(freeOf(manager)).toEqual([2 * GI, 2 * GI, 8 * GI]);
    await small.release();
    expect(freeOf(manager)).toEqual([8 * GI, 2 * GI, 8 * GI]);
    // Node 1 is used alone and takes no part in a group.
    const wide = await admit(manager, pod('9Gi'));
    expect(placeOf(wide)).toEqual(['0,2']);
    expect(manager.memory().map(({ node, group }) => [node, group])).toEqual([
      [0, [0, 2]],
      [1, [1]],
      [2, [0, 2]],
    ]);
    expect(freeOf(manager)).toEqual([0, 2 * GI, 7 * GI]);
    // And nodes of a group take no single allocation.
    expect(placeOf(await admit(manager, pod('2Gi')))).toEqual(['1']);
    expect((await errorOf(() => admit(manager, pod('1Gi'), { policy: 'single-numa-node' }))).code).toBe(
      'ERR_TOPOLOGY_AFFINITY',
    );
    await wide.release();
    expect(manager.memory().map(({ group }) => group.length)).toEqual([1, 1, 1]);
  });

  it('is near the CPUs', async () => {
    const manager = await simulate(await nodesWith(2), { policy: 'single-numa-node' });
    await admit(manager, pod('6Gi'));
    const admitted = await admit(manager, { containers: [guaranteed('main', { cpu: 2, memory: '4Gi' })] });
    expect(placeOf(admitted)).toEqual(['1']);
    expect(String(admitted.container('main').cpus)).toBe('4-5');
  });

  it('of all types goes to the same NUMA nodes', async () => {
    const topology = await machineOf([
      NODE,
      { ...NODE, hugepages: { 2048: 32 } },
      { ...NODE, hugepages: { 2048: 8 } },
    ]);
    const manager = await simulate(topology, { policy: 'restricted' });
    const admitted = await admit(manager, pod('1Gi', { [HUGE]: '20Mi' }));
    const other = manager.plan(pod('1Gi', { 'hugepages-2048Ki': '20Mi' }));
    expect(other.containers[0]!.memory[1]).toEqual({ nodes: [1], type: HUGE, bytes: 20 * MI });
    expect(admitted.container('main').memory).toEqual([
      { nodes: [1], type: 'memory', bytes: GI },
      { nodes: [1], type: HUGE, bytes: 20 * MI },
    ]);
    expect(manager.memory().filter(({ type }) => type === HUGE)).toEqual([
      {
        ...{ node: 1, type: HUGE, total: 64 * MI, systemReserved: 0, allocatable: 64 * MI },
        reserved: 20 * MI,
        free: 44 * MI,
        group: [1],
      },
      {
        ...{ node: 2, type: HUGE, total: 16 * MI, systemReserved: 0, allocatable: 16 * MI },
        reserved: 0,
        free: 16 * MI,
        group: [2],
      },
    ]);
    // Hugepages do not count as ordinary memory.
    expect(manager.memory()[1]).toMatchObject({ node: 1, type: 'memory', total: 8 * GI - 64 * MI });
    const plan = manager.plan(pod('1Gi', { [HUGE]: '20Mi' }));
    expect(plan.hints[0]!.offered.map(({ resource, hints }) => [resource, hints.toJSON()[0]])).toEqual([
      ['memory', { nodes: '1', preferred: true }],
      [HUGE, { nodes: '1', preferred: true }],
    ]);
  });

  it('that a device’s NUMA node lacks is on the fewest nodes, that one included, that have all of its types', async () => {
    const pages = [3, 0, 5, 8];
    const topology = await machineOf(pages.map((count) => ({ ...NODE, hugepages: { 2048: count } })));
    const manager = await openManager({ topology });
    manager.registerDevices('example.com/nic', [{ id: 'nic', numaNodes: [0] }]);
    const { containers } = manager.plan(pod('1Mi', { 'hugepages-2Mi': '8Mi', 'example.com/nic': 1 }));
    expect(containers[0]!.memory).toEqual([
      { nodes: [0, 2], type: 'memory', bytes: MI },
      { nodes: [0, 2], type: 'hugepages-2Mi', bytes: 8 * MI },
    ]);
  });

  it('of init containers is used again by later ones, and free once those have started', async () => {
    const manager = await simulate(await nodesWith(1));
    const spec = {
      uid: 'web',
      initContainers: [
        guaranteed('small', { cpu: '500m', memory: '1Gi' }),
        guaranteed('large', { cpu: '500m', memory: '5Gi' }),
        { ...guaranteed('proxy', { cpu: '500m', memory: '1Gi' }), restartPolicy: 'Always' },
      ],
      containers: [guaranteed('main', { cpu: '500m', memory: '2Gi' })],
    };
    const admitted = await admit(manager, spec);
    const bytes = () => admitted.containers.map(({ memory }) => memory.map((block) => block.bytes / GI));
    expect(bytes()).toEqual([[0], [2], [1], [2]]);
    expect(freeOf(manager)).toEqual([3 * GI]);
    await admitted.markStarted('large');
    expect(bytes()).toEqual([[], [2], [1], [2]]);
    await admitted.markStarted('proxy');
    expect(bytes()).toEqual([[], [], [1], [2]]);
    expect(freeOf(manager)).toEqual([5 * GI]);
    const generation = manager.generation();
    await admitted.markStarted('small');
    expect(manager.generation()).toBe(generation);
    await admitted.markStarted('main');
    expect((await errorOf(() => admitted.markStarted('unknown'))).code).toBe('ERR_UNKNOWN_CONTAINER');
    await admitted.release();
    expect(freeOf(manager)).toEqual([8 * GI]);
    expect((await errorOf(() => admitted.markStarted('main'))).code).toBe('ERR_UNKNOWN_GRANT');
    // Another pod with its uid does not count.
    await new Promise((resolve) => setTimeout(resolve, 2));
    await admit(manager, spec);
    expect((await errorOf(() => admitted.markStarted('main'))).code).toBe('ERR_UNKNOWN_GRANT');
  });

  it('of a container is refused on a wider set than it needs if the policy prefers the pod’s set', async () => {
    const nodes = await machineOf([0, 1].map(() => ({ ...NODE, hugepages: { 2048: 10 } })));
    const manager = await simulate(nodes, {
      policy: 'restricted',
      scope: 'pod',
    });
    const container = (name: string, cpu: number, pages: number) =>
      guaranteed(name, { cpu, [HUGE]: `${2 * pages}Mi` });
    const spec = (pages: number) => ({
      initContainers: [container('init', 5, pages)],
      containers: [container('first', 3, 9), container('second', 3, 9)],
    });
    // Like the kubelet: memory of the init container is not free for the first one, which alone
    // would need one node.
    expect(await errorOf(() => admit(manager, spec(12)))).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
      message: expect.stringContaining('includes 0-1 has this much free as narrowly as possible;'),
    });
    expect(placeOf(await admit(manager, spec(11)), 'first')).toEqual(['0,1', '0,1']);
  });

  it('is counted once for the whole pod in pod scope', async () => {
    const manager = await simulate(await nodesWith(2), { scope: 'pod' });
    const two = (memory: string) => ({
      containers: ['a', 'b'].map((name) => guaranteed(name, { cpu: '500m', memory })),
    });
    const admitted = await admit(manager, two('4Gi'), { policy: 'single-numa-node' });
    expect([placeOf(admitted, 'a'), placeOf(admitted, 'b')]).toEqual([['0'], ['0']]);
    expect((await errorOf(() => admit(manager, two('5Gi'), { policy: 'single-numa-node' }))).code).toBe(
      'ERR_TOPOLOGY_AFFINITY',
    );
  });

  it('is booked only for Guaranteed pods, by the policies Static and BestEffort, if the machine reports any', async () => {
    const burstable = { containers: [{ name: 'main', requests: { memory: '1Gi' } }] };
    const booked = async (options: ManagerOptions, spec: object = pod('1Gi')) => {
      const manager = await simulate(await nodesWith(1), options);
      return placeOf(await admit(manager, spec));
    };
    expect(await booked({})).toEqual(['0']);
    expect(await booked({ memoryManagerPolicy: 'Static' })).toEqual(['0']);
    expect(await booked({ memoryManagerPolicy: 'BestEffort' })).toEqual(['0']);
    expect(await booked({ memoryManagerPolicy: 'None' })).toEqual([]);
    expect(await booked({}, burstable)).toEqual([]);
    const silent = await simulate('numa:2 core:2 pu:1');
    expect(placeOf(await admit(silent, pod('900Gi')))).toEqual([]);
    const kubelet = { kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1' };
    expect(await booked({ kubeletConfiguration: kubelet })).toEqual([]);
    expect(await booked({ kubeletConfiguration: { ...kubelet, memoryManagerPolicy: 'Static' } })).toEqual([
      '0',
    ]);
    expect((await errorOf(() => booked({ memoryManagerPolicy: 'static' as never }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
  });

  it('can be acquired with CPUs, hugepages and devices', async () => {
    const manager = await simulate(await nodesWith(2, { hugepages: { 2048: 16 } }), {
      devices: { 'example.com/nic': [{ id: 'eth0', numaNodes: [1] }] },
    });
    const grant = await manager.acquire({
      cpu: 2,
      memory: '2Gi',
      resources: { [HUGE]: '8Mi', 'example.com/nic': 1 },
      policy: 'single-numa-node',
    });
    expect(grant.toJSON()).toMatchObject({
      cpus: grant.cpus,
      memory: [
        { nodes: [1], type: 'memory', bytes: 2 * GI },
        { nodes: [1], type: HUGE, bytes: 8 * MI },
      ],
      devices: { 'example.com/nic': [{ id: 'eth0', nodes: [1] }] },
    });
    expect([String(grant.cpus), String(grant.numaNodes)]).toEqual(['4-5', '1']);
    expect(manager.grants()[0]).toMatchObject({ memory: grant.memory, devices: grant.devices });
    await grant.release();
    expect(manager.memory().every(({ reserved }) => reserved === 0)).toBe(true);
    const wrong = [
      [{ memory: '1.5 Gi' }, 'ERR_INVALID_QUANTITY'],
      [{ memory: -1 }, 'ERR_INVALID_OPTION'],
      [{ resources: 'none' }, 'ERR_INVALID_OPTION'],
      [{ resources: { memory: '1Gi' } }, 'ERR_INVALID_OPTION'],
      [{ resources: { cpu: 1 } }, 'ERR_INVALID_OPTION'],
      [{ resources: { [HUGE]: '3Mi' } }, 'ERR_INVALID_OPTION'],
      [{ resources: { 'hugepages-x': 1 } }, 'ERR_INVALID_OPTION'],
      [{ resources: { 'example.com/nic': 0.5 } }, 'ERR_INVALID_OPTION'],
    ] as const;
    for (const [options, code] of wrong) {
      const error = await errorOf(() => manager.acquire({ cpu: 1, ...options } as never));
      expect([options, error.code]).toEqual([options, code]);
    }
  });

  it('explains a shortage', async () => {
    const manager = await simulate(await nodesWith(2), {
      reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
      policy: 'single-numa-node',
    });
    await admit(manager, { uid: 'db', ...pod('6Gi') });
    const error = await errorOf(() => admit(manager, pod('9Gi')));
    expect(error.message).not.toContain('\n');
    const { explanation } = manager.plan(pod('9Gi'));
    expect(explanation!.text.split('\n')).toEqual([
      'TopologyAffinityError: container main: the resources cannot be aligned as single-numa-node asks',
      'memory: 9 GiB requested; free by NUMA node: 0: 1 GiB of 7 GiB, 1: 8 GiB of 8 GiB',
      '  hints: none',
      '  reserved: 1 GiB of NUMA node 0',
      expect.stringMatching(/^ {2}held by "db".*: 6 GiB of NUMA node 0$/),
      'no policy would admit it now',
    ]);
    expect(explanation!.resources[0]!.nodes).toEqual([
      { node: 0, free: GI, possible: 7 * GI },
      { node: 1, free: 8 * GI, possible: 8 * GI },
    ]);
    expect(await errorOf(() => admit(manager, pod('9Gi'), { policy: 'none' }))).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
      details: { value: { memory: 9 * GI }, free: { 0: { memory: GI }, 1: { memory: 8 * GI } } },
    });
  });
});

describe('reserved memory', () => {
  const options = { reservedMemory: [{ numaNode: 1, limits: { memory: '3Gi', [HUGE]: '4Mi' } }] };

  it('is a setting of the machine, never granted, and changed for all', async () => {
    const topology = await nodesWith(2, { hugepages: { 2048: 8 } });
    const manager = await simulate(topology, options);
    const { stateDir } = manager;
    expect(manager.settings().reservedMemory).toEqual({ 1: { memory: 3 * GI, [HUGE]: 4 * MI } });
    expect(freeOf(manager, HUGE)).toEqual([16 * MI, 12 * MI]);
    expect(manager.memory()[2]).toMatchObject({ node: 1, systemReserved: 3 * GI, free: 5 * GI - 16 * MI });
    (await openManager({ topology, stateDir, ...options })).close();
    (await openManager({ topology, stateDir })).close();
    const error = await errorOf(() => openManager({ topology, stateDir, reservedMemory: [] }));
    expect(error).toMatchObject({ code: 'ERR_CONFIG_CONFLICT' });
    expect(error.message).toContain(
      'NUMA node 1: 4194304 bytes of hugepages-2Mi, NUMA node 1: 3221225472 bytes of memory, not none',
    );
    await admit(manager, pod('6Gi'));
    await manager.configure({ reservedMemory: [{ numaNode: 0, limits: { memory: '4Gi' } }] });
    // Granted memory stays, even if it exceeds the rest.
    expect(manager.memory()[0]).toMatchObject({ reserved: 6 * GI, free: 0 });
    expect(manager.memory()[2]).toMatchObject({ systemReserved: 0 });
  });

  it('may come in a KubeletConfiguration', async () => {
    const kubeletConfiguration = {
      kind: 'KubeletConfiguration',
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      memoryManagerPolicy: 'Static',
      reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
    };
    const manager = await simulate(await nodesWith(2), { kubeletConfiguration });
    expect(manager.settings().reservedMemory).toEqual({ 0: { memory: GI } });
  });

  it('names NUMA nodes and types of the machine, in possible amounts, once each', async () => {
    const topology = await nodesWith(2, { hugepages: { 2048: 8 } });
    const wrong = [
      'all',
      [{ numaNode: 0 }],
      [{ limits: {} }],
      [{ numaNode: -1, limits: {} }],
      [{ numaNode: 2, limits: { memory: 1 } }],
      [{ numaNode: 0, limits: { memory: '9Gi' } }],
      [{ numaNode: 0, limits: { memory: -1 } }],
      [{ numaNode: 0, limits: { cpu: 1 } }],
      [{ numaNode: 0, limits: { 'hugepages-1Gi': '1Gi' } }],
      [{ numaNode: 0, limits: { [HUGE]: '1Mi' } }],
      [
        { numaNode: 0, limits: { memory: 1 } },
        { numaNode: 0, limits: { memory: 2 } },
      ],
      [{ numaNode: 0, limit: { memory: 1 } }],
    ];
    for (const reservedMemory of wrong) {
      const error = await errorOf(() => openManager({ topology, reservedMemory: reservedMemory as never }));
      expect([reservedMemory, error.code]).toEqual([reservedMemory, 'ERR_INVALID_OPTION']);
    }
  });
});

describe('a changed machine', () => {
  it('keeps its bookings, and makes none on a group with a missing NUMA node until it is back', async () => {
    const whole = await nodesWith(3);
    const manager = await simulate(whole);
    const { stateDir } = manager;
    const wide = await admit(manager, pod('9Gi'));
    expect(placeOf(wide)).toEqual(['0,1']);
    await admit(manager, pod('2Gi'));
    const before = manager.memory();
    manager.close();

    const smaller = await machineOf([NODE, { ...NODE, id: 2 }]);
    const changed = await openManager({ topology: smaller, stateDir });
    expect(changed.grants()).toHaveLength(2);
    expect(changed.memory().map(({ node, reserved, group }) => [node, reserved, group])).toEqual([
      [0, 8 * GI, [0, 1]],
      [2, 2 * GI, [2]],
    ]);
    for (const policy of ['none', 'best-effort', 'restricted'] as const) {
      expect((await errorOf(() => admit(changed, pod('7Gi'), { policy }))).code).toMatch(/AFFINITY|MEMORY/);
    }
    expect(placeOf(await admit(changed, pod('1Gi')))).toEqual(['2']);
    changed.close();

    // This node of the group has memory left.
    const other = await openManager({
      topology: await machineOf([1, 2].map((id) => ({ ...NODE, id }))),
      stateDir,
    });
    expect(freeOf(other)).toEqual([7 * GI, 5 * GI]);
    expect((await errorOf(() => admit(other, pod('6Gi'), { policy: 'best-effort' }))).code).toMatch(
      /AFFINITY|MEMORY/,
    );
    const small = await admit(other, pod('1Gi'), { policy: 'best-effort' });
    expect(placeOf(small)).toEqual(['2']);
    await small.release();
    other.close();

    const again = await openManager({ topology: whole, stateDir });
    expect(again.memory().slice(0, 2)).toEqual(before.slice(0, 2));
    await again.release(wide.uid);
    expect(freeOf(again)).toEqual([8 * GI, 8 * GI, 5 * GI]);
    again.close();
  });

  it('with less memory than booked has none free, and gives back its bookings', async () => {
    const manager = await simulate(await nodesWith(1));
    const { stateDir } = manager;
    const { uid } = await admit(manager, pod('6Gi'));
    manager.close();
    const smaller = await openManager({ topology: await nodesWith(1, { memory: 2 * GI }), stateDir });
    expect(smaller.memory()[0]).toMatchObject({ total: 2 * GI, reserved: 6 * GI, free: 0 });
    await smaller.release(uid);
    expect(smaller.memory()[0]).toMatchObject({ reserved: 0, free: 2 * GI });
    smaller.close();
  });
});

describe('a machine of many NUMA nodes', () => {
  it('says quickly why types of memory do not fit if they are on different nodes', async () => {
    const nodes = Array.from({ length: 48 }, (_, i) =>
      i % 2 === 0 ? { cpus: 1, memory: GI } : { cpus: 0, memory: GI, hugepages: { 2048: 512 } },
    );
    const manager = await simulate(await machineOf(nodes), {
      policy: 'single-numa-node',
      memoryTiers: 'any',
    });
    const time = cpuTimeOf(() => {
      const { explanation } = manager.plan(pod('9Gi', { [HUGE]: '9Gi' }));
      expect(explanation!.text).toContain('hints: ');
      JSON.stringify(explanation);
    });
    // It does not take minutes.
    expect(time).toBeLessThan(10_000);
  });

  it('has its memory placed like any other', async () => {
    const nodes = Array.from({ length: 34 }, (_, i) => ({ cpus: i < 2 ? 8 : 0, memory: (i + 1) * GI }));
    const manager = await simulate(await machineOf(nodes), { policy: 'restricted', memoryTiers: 'any' });
    const spec = { containers: [guaranteed('main', { cpu: 2, memory: '2Gi' })] };
    const { containers, exact } = manager.plan(spec);
    expect([containers[0]!.memory[0]!.nodes, String(containers[0]!.cpus), exact]).toEqual([[1], '8-9', true]);
    expect(placeOf(await admit(manager, pod('34Gi')))).toEqual(['33']);
    const wide = await admit(manager, pod('60Gi'), { policy: 'best-effort' });
    expect(wide.container('main').memory[0]!.nodes).toHaveLength(2);
    expect(thrownBy(() => manager.plan(pod('1Gi')))).toBeUndefined();
  });

  it('with more than 64 nodes has only CPUs and devices, and only the policy none', async () => {
    const manager = await simulate(await nodesWith(65, { cpus: 1 }), { policy: 'none' });
    manager.registerDevices('example.com/nic', [{ id: 'eth0', numaNodes: [64] }]);
    const spec = { containers: [guaranteed('main', { cpu: 2, memory: '9Gi', 'example.com/nic': 1 })] };
    const admitted = await admit(manager, spec);
    expect([admitted.container('main').cpus?.size, placeOf(admitted)]).toEqual([2, []]);
    expect(admitted.container('main').devices['example.com/nic']).toHaveLength(1);
    expect((await errorOf(() => admit(manager, spec, { policy: 'best-effort' }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
  });

  it('trusts its description about the memory of a node', async () => {
    const topology = await discover({ synthetic: 'numa:2(memory=4GB) core:2 pu:1' });
    const manager = await openManager({ topology });
    expect(freeOf(manager)).toEqual(topology.nodes.map(({ memoryBytes }) => memoryBytes));
  });
});
