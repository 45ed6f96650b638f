// needs: nothing
// The worked examples of the proposals of Kubernetes' CPU, Memory and Topology Managers, with their
// numbers. test/conformance/README.md lists their other promises.
import { describe, expect, it } from 'vitest';
import { mergeHints } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, NodeSet, type Pod } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { GI, MI, machineOf, type NodeSpec } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const G = 10 ** 9;
const GPU = 'example.com/gpu';
const NIC = 'example.com/nic';

type Machine = Parameters<typeof simulate>[0];

const admit = (manager: Manager, containers: object[], more = {}): Promise<Pod> =>
  manager.admit({ containers, ...more } as never);
const cpusOf = (pod: Pod) => pod.containers.map(({ cpus }) => cpus?.toString() ?? 'shared');
const reasonOf = async (admission: () => Promise<unknown>) => (await errorOf(admission)).details.reason;

describe('the CPU Manager', () => {
  const WITH_SIBLINGS = 'package:2 numa:1 core:4 pu:2';
  const burstable = { requests: { cpu: 1, memory: '64Mi' }, limits: { cpu: 2, memory: '64Mi' } };

  it.each<[string, object[], string[]]>([
    ['half a CPU', [guaranteed('a', { cpu: '500m' })], ['shared']],
    ['two CPUs', [guaranteed('a', { cpu: 2 })], ['0-1']],
    [
      'one CPU, and half of one',
      [guaranteed('a', { cpu: 1 }), guaranteed('b', { cpu: '500m' })],
      ['0', 'shared'],
    ],
    [
      'one and a half, and half of one',
      [guaranteed('a', { cpu: '1500m' }), guaranteed('b', { cpu: '500m' })],
      ['shared', 'shared'],
    ],
    ['more as its limit than as its request', [{ name: 'a', ...burstable }], ['shared']],
    ['nothing', [{ name: 'a' }], ['shared']],
  ])('shares or grants CPUs by its table of examples: %s', async (_, containers, cpus) => {
    const manager = await simulate(WITH_SIBLINGS);
    expect(cpusOf(await admit(manager, containers))).toEqual(cpus);
    const exclusive = CpuSet.parse(cpus.filter((list) => list !== 'shared').join());
    expect(manager.sharedPool()).toEqual(CpuSet.parse('0-15').difference(exclusive));
  });

  it('gives two cores of one socket if cores have no siblings', async () => {
    const manager = await simulate('package:2 numa:1 core:3 pu:1');
    await admit(manager, [guaranteed('first', { cpu: 2 })]);
    // One CPU is left on the first socket.
    expect(cpusOf(await admit(manager, [guaranteed('a', { cpu: 2 })]))).toEqual(['3-4']);
  });

  it('reserves the sum of both amounts, rounded up, from the first core on', async () => {
    const amounts = {
      kubeReserved: { cpu: '500m', memory: '50Mi' },
      systemReserved: { cpu: '123m', memory: '333Mi' },
    };
    const one = await simulate(WITH_SIBLINGS, amounts);
    expect(String(one.settings().reservedSystemCPUs)).toBe('0');
    const two = await simulate(WITH_SIBLINGS, { ...amounts, systemReserved: { cpu: '501m' } });
    expect(String(two.settings().reservedSystemCPUs)).toBe('0-1');
    // They stay shared, and belong to no grant.
    expect(String(two.sharedPool())).toBe('0-15');
    expect(cpusOf(await admit(two, [guaranteed('a', { cpu: 14 })]))).toEqual(['2-15']);
  });

  describe('with 24 CPUs, of which the kernel isolates 4-23 and the system has 0-3', () => {
    const machine = 'package:2 numa:1 core:6 pu:2';
    const reserved = { reservedSystemCPUs: '0-3', systemReserved: { cpu: 1 } };

    it('grants only the isolated ones, to requests for them', async () => {
      const manager = await simulate(machine, { ...reserved, isolatedCPUs: '4-23' });
      // The list takes precedence over the amount.
      expect(String(manager.settings().reservedSystemCPUs)).toBe('0-3');
      expect(String(manager.sharedPool())).toBe('0-3');
      expect(String(manager.freeCpus())).toBe('');
      const grant = await manager.acquire({ cpu: 20, isolation: 'require' });
      expect(String(grant.cpus)).toBe('4-23');
    });

    it('grants them to all like the kubelet, if they are set to be like others', async () => {
      const manager = await simulate(machine, { ...reserved, isolatedCPUs: '' });
      expect(String(manager.sharedPool())).toBe('0-23');
      expect(cpusOf(await admit(manager, [guaranteed('a', { cpu: 20 })]))).toEqual(['4-23']);
      expect(String(manager.sharedPool())).toBe('0-3');
    });
  });

  it('divides one CPU more than a NUMA node has between two nodes, under distribute-cpus-across-numa', async () => {
    const cpus = async (options: object, cpu: number) => {
      const manager = await simulate(WITH_SIBLINGS, { cpuManagerPolicyOptions: options });
      const [first] = (await admit(manager, [guaranteed('a', { cpu })])).containers;
      return ['0-7', '8-15'].map((node) => first!.cpus!.intersection(CpuSet.parse(node)).size);
    };
    expect(await cpus({}, 9)).toEqual([8, 1]);
    const distribute = { 'distribute-cpus-across-numa': true };
    expect(await cpus(distribute, 9)).toEqual([5, 4]);
    expect(await cpus({ ...distribute, 'full-pcpus-only': true }, 10)).toEqual([6, 4]);
    // A request that one node can hold is not divided.
    expect(await cpus(distribute, 8)).toEqual([8, 0]);
  });

  it('keeps three containers of four CPUs each in one L3 group, under align-by-uncorecache', async () => {
    const cpus = async (options: object) => {
      const manager = await simulate('package:1 numa:1 l3:2 core:8 pu:1', {
        reservedSystemCPUs: '0-1',
        cpuManagerPolicyOptions: options,
      });
      const pods = [];
      for (let i = 0; i < 3; i++) pods.push(await admit(manager, [guaranteed('a', { cpu: 4 })]));
      return pods.flatMap(cpusOf);
    };
    expect(await cpus({})).toEqual(['2-5', '6-9', '10-13']);
    expect(await cpus({ 'prefer-align-cpus-by-uncorecache': true })).toEqual(['2-5', '8-11', '12-15']);
  });

  it('rejects five CPUs on cores of two threads, under full-pcpus-only', async () => {
    const manager = await simulate('package:1 core:16 pu:2', {
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    const containers = [guaranteed('app', { cpu: 5, memory: '128Mi' })];
    expect(await reasonOf(() => admit(manager, containers))).toBe('SMTAlignmentError');
    expect(cpusOf(await admit(manager, [guaranteed('app', { cpu: 6 })]))).toEqual(['0-5']);
    // Three cores for five threads; the sixth stays idle.
    const grant = await manager.acquire({ cpu: 3, smt: 'hold-sibling' });
    expect([grant.cpus, grant.held].map(String)).toEqual(['6,8,10', '7,9,11']);
  });

  it('places two pods of four of eight NUMA nodes less 8 CPUs on a socket each, aligned by socket and distributed, but packed the second on both', async () => {
    const placed = async (cpuManagerPolicyOptions: object) => {
      const options = { policy: 'restricted', cpuManagerPolicyOptions } as const;
      const manager = await simulate('package:2 numa:4 core:16 pu:1', options);
      const container = guaranteed('a', { cpu: 4 * 16 - 8 });
      const pods = [await admit(manager, [container]), await admit(manager, [container])];
      return pods.map((pod) => [...cpusOf(pod), pod.containers[0]!.hint]);
    };
    const on = (...nodes: number[]) => ({ nodes: NodeSet.of(...nodes), preferred: true });
    // A mask across sockets of minimal width is preferred too.
    for (const aligned of [false, true]) {
      const packed = await placed({ 'align-by-socket': aligned });
      expect(packed).toEqual([
        ['0-55', on(0, 1, 2, 3)],
        ['56-111', on(3, 4, 5, 6)],
      ]);
    }
    // What is left of the first socket is then 2 CPUs on each of its nodes.
    const distributed = await placed({ 'align-by-socket': true, 'distribute-cpus-across-numa': true });
    expect(distributed).toEqual([
      ['0-13,16-29,32-45,48-61', on(0, 1, 2, 3)],
      ['64-77,80-93,96-109,112-125', on(4, 5, 6, 7)],
    ]);
  });
});

describe('the Topology Manager', () => {
  it('counts for a pod the larger of its largest init container and the sum of its containers', async () => {
    const pod = {
      initContainers: [
        guaranteed('init-container-1', { cpu: 2, memory: '1G' }),
        guaranteed('init-container-2', { cpu: 2, memory: '3G' }),
      ],
    };
    const containers = [
      guaranteed('app-container-1', { cpu: 2, memory: '1G' }),
      guaranteed('app-container-2', { cpu: 1, memory: '1G' }),
    ];
    const of = async (node: NodeSpec) =>
      simulate(await machineOf([node, node]), {
        policy: 'single-numa-node',
        scope: 'pod',
      });
    // 3 CPUs and 3G in all: neither 7 CPUs and 6G, nor the 2 CPUs and 3G of init containers alone.
    const admitted = await admit(await of({ cpus: 3, memory: 3 * G }), containers, pod);
    const hint = { nodes: NodeSet.of(0), preferred: true };
    expect(admitted.containers.map((container) => container.hint)).toEqual([hint, hint, hint, hint]);
    for (const node of [
      { cpus: 2, memory: 3 * G },
      { cpus: 3, memory: 3 * G - 1 },
    ]) {
      const manager = await of(node);
      expect(await reasonOf(() => admit(manager, containers, pod))).toBe('TopologyAffinityError');
    }
  });

  it('does not count ephemeral containers', async () => {
    const manager = await simulate('numa:2 core:2 pu:1', { policy: 'single-numa-node' });
    const { metadata, spec } = {
      metadata: { uid: 'web', name: 'web' },
      spec: {
        containers: [{ name: 'main', resources: { limits: { cpu: '2', memory: '64Mi' } } }],
        ephemeralContainers: [{ name: 'debugger', image: 'busybox' }],
      },
    };
    const pod = await manager.admit({ apiVersion: 'v1', kind: 'Pod', metadata, spec } as never);
    expect(pod.containers.map(({ name, cpus }) => [name, String(cpus)])).toEqual([['main', '0-1']]);
  });

  it.each([
    ['Burstable', { cpu: 1 }],
    ['BestEffort', {}],
  ])('aligns the devices of %s pods', async (_, requests) => {
    const manager = await simulate('numa:2 core:2 pu:1', { policy: 'single-numa-node' });
    manager.registerDevices(GPU, [
      { id: 'gpu0', numaNodes: [0] },
      { id: 'gpu1', numaNodes: [1] },
    ]);
    manager.registerDevices(NIC, [{ id: 'nic1', numaNodes: [1] }]);
    const devices = { [GPU]: 1, [NIC]: 1 };
    const pod = await admit(manager, [
      { name: 'main', requests: { ...requests, ...devices }, limits: devices },
    ]);
    const main = pod.container('main');
    expect(main.hint).toEqual({ nodes: NodeSet.of(1), preferred: true });
    expect(main.devices).toEqual({
      [GPU]: [{ id: 'gpu1', nodes: [1] }],
      [NIC]: [{ id: 'nic1', nodes: [1] }],
    });
  });

  // Nodes 0 and 1, 2 and 3 are neighbours.
  const QUARTER = [
    [10, 11, 12, 12],
    [11, 10, 12, 12],
    [12, 12, 10, 11],
    [12, 12, 11, 10],
  ];
  const closest = { 'prefer-closest-numa-nodes': true };

  it('takes the closest NUMA nodes under prefer-closest-numa-nodes', async () => {
    const machine = await machineOf(QUARTER.map((distances) => ({ cpus: 4, memory: 8 * GI, distances })));
    const nodesOf = async (topologyManagerPolicyOptions: object) => {
      const manager = await simulate(machine, {
        policy: 'restricted',
        topologyManagerPolicyOptions,
      });
      // Node 0 is full.
      await admit(manager, [guaranteed('first', { cpu: 4, memory: '8Gi' })]);
      const [main] = (await admit(manager, [guaranteed('main', { cpu: 8, memory: '12Gi' })])).containers;
      return String(main!.hint!.nodes);
    };
    expect(await nodesOf({})).toBe('1-2');
    expect(await nodesOf(closest)).toBe('2-3');
  });

  it('takes two NUMA nodes far from each other before three that are close', () => {
    const far = [30, 30, 30, 30];
    const distances = [...QUARTER.map((row) => [...row, ...far]), ...QUARTER.map((row) => [...far, ...row])];
    const cpu = [
      { nodes: NodeSet.of(0, 4), preferred: true },
      { nodes: NodeSet.of(0, 1, 2), preferred: true },
    ];
    const merged = mergeHints([{ cpu }], {
      numaNodes: [0, 1, 2, 3, 4, 5, 6, 7],
      policy: 'restricted',
      policyOptions: closest,
      distances,
    });
    expect(merged.hint).toEqual(cpu[0]);
  });
});

describe('the Memory Manager', () => {
  const shared = (memory: string, more = {}) => [guaranteed('main', { cpu: '500m', memory, ...more })];
  const nodes = (count: number, node: NodeSpec) => machineOf(Array.from({ length: count }, () => node));
  const groupsOf = (manager: Manager) => [
    ...new Set(manager.memory().flatMap(({ type, group }) => (type === 'memory' ? [group.join()] : []))),
  ];
  const placeOf = (pod: Pod) => pod.container('main').memory[0]!.nodes.join();

  it('keeps a table for each NUMA node and type, whose free and reserved memory add up to the allocatable', async () => {
    const machine: Machine = await nodes(2, { cpus: 4, memory: 10 * G + GI, hugepages: { 1048576: 1 } });
    const manager = await simulate(machine, {
      reservedMemory: [
        { numaNode: 0, limits: { memory: '500M' } },
        { numaNode: 1, limits: { memory: '100M' } },
      ],
    });
    const tables = () =>
      manager.memory().map(({ node, type, total, systemReserved, allocatable, reserved, free }) => {
        expect([allocatable, free + reserved]).toEqual([total - systemReserved, allocatable]);
        return [node, type, total, systemReserved, reserved];
      });
    const pages = 'hugepages-1Gi';
    expect(tables()).toEqual([
      [0, 'memory', 10 * G, 0.5 * G, 0],
      [0, pages, GI, 0, 0],
      [1, 'memory', 10 * G, 0.1 * G, 0],
      [1, pages, GI, 0, 0],
    ]);
    await admit(manager, shared('6G'));
    const second = await admit(manager, shared('7G', { [pages]: '1Gi' }));
    expect(tables().map((table) => table.at(-1))).toEqual([6 * G, 0, 7 * G, GI]);
    await second.release();
    expect(tables().map((table) => table.at(-1))).toEqual([6 * G, 0, 0, 0]);
  });

  it('keeps groups of NUMA nodes disjoint: [0], [1,2] and [3]', async () => {
    const manager = await simulate(await nodes(4, { cpus: 4, memory: 10 * G }));
    expect(placeOf(await admit(manager, shared('8G')))).toBe('0');
    const second = await admit(manager, shared('8G'));
    const third = await admit(manager, shared('8G'));
    expect([placeOf(second), placeOf(third)]).toEqual(['1', '2']);
    expect(placeOf(await admit(manager, shared('8G')))).toBe('3');
    await second.release();
    await third.release();
    expect(placeOf(await admit(manager, shared('15G')))).toBe('1,2');
    expect(groupsOf(manager)).toEqual(['0', '1,2', '3']);
    // Nodes 0 and 3 have 2G each, and the group has 5G: nothing is taken across them.
    expect(placeOf(await admit(manager, shared('3G')))).toBe('1,2');
    expect((await errorOf(() => admit(manager, shared('4G')))).code).toBe('ERR_INSUFFICIENT_MEMORY');
    expect(groupsOf(manager)).toEqual(['0', '1,2', '3']);
  });

  it.each(['restricted', 'single-numa-node'] as const)(
    'makes %s reject a pod for which a group of two nodes has room, since one node could hold it',
    async (policy) => {
      const manager = await simulate(await nodes(2, { cpus: 4, memory: 10 * G }), {
        policy: 'restricted',
      });
      expect(placeOf(await admit(manager, shared('15G')))).toBe('0,1');
      const second = { containers: shared('5G') } as never;
      expect(await reasonOf(() => manager.admit(second, { policy }))).toBe('TopologyAffinityError');
      expect(placeOf(await manager.admit(second, { policy: 'best-effort' }))).toBe('0,1');
    },
  );

  it('offers the node with both memory and hugepages of 1 GiB', async () => {
    const node: NodeSpec = { cpus: 4, memory: 8 * GI };
    for (const huge of [0, 1]) {
      const machine = await machineOf(
        [0, 1].map((id) => (id === huge ? { ...node, hugepages: { 1048576: 1 } } : node)),
      );
      const manager = await simulate(machine, { policy: 'single-numa-node' });
      const pod = await admit(manager, shared('2Gi', { 'hugepages-1Gi': '1Gi' }));
      expect(pod.container('main').hint).toEqual({ nodes: NodeSet.of(huge), preferred: true });
    }
  });

  it('leaves the total of reserved memory to the administrator', async () => {
    const manager = await simulate(await nodes(2, { cpus: 4, memory: 8 * GI }), {
      kubeletConfiguration: {
        ...{ kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1' },
        memoryManagerPolicy: 'Static',
        kubeReserved: { cpu: '500m', memory: '50Mi' },
        systemReserved: { cpu: '123m', memory: '333Mi' },
        evictionHard: { 'memory.available': '500Mi' },
        // 3 GiB, which the kubelet refuses, and `plan --config`: it expects the 883 MiB of the sum.
        reservedMemory: [
          { numaNode: 0, limits: { memory: '1Gi' } },
          { numaNode: 1, limits: { memory: '2Gi' } },
        ],
      },
    });
    expect(manager.memory().map(({ systemReserved }) => systemReserved / MI)).toEqual([1024, 2048]);
  });
});
