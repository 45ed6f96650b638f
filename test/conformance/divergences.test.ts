// needs: nothing
// The divergences of numalign from the kubelet, each by its smallest example. The letters are those
// of the recorded cases' list.
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import {
  type ContainerSpec,
  type Manager,
  type ManagerOptions,
  openManager,
  type Pod,
  type PodSpec,
} from '../../lib/index.js';
import type { ResourceAmounts } from '../../lib/input/pods/resource-amounts.js';
import { errorOf } from '../support/error-of.js';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const PERSISTENT = { owner: 'persistent' } as const;

/** A pod of one Guaranteed container. */
const pod = (uid: string, cpu: number | string, memory: string, more = {}) => ({
  uid,
  containers: [guaranteed('main', { cpu, memory, ...more })],
});
const admit = (manager: Manager, spec: PodSpec) => manager.admit(spec, PERSISTENT);
const nodesOf = (admitted: Pod) => admitted.containers.map(({ memory }) => memory.map(({ nodes }) => nodes));
const cpusOf = (admitted: Pod) => admitted.containers.map(({ cpus }) => String(cpus));

/** The same state in another manager. */
async function reopened(manager: Manager, options: ManagerOptions = {}): Promise<Manager> {
  const { topology, stateDir } = manager;
  manager.close();
  return simulate(topology, { ...options, stateDir });
}

/** Admits a pod, reopens with the same options and admits it again: its grant must be the same. */
async function expectStays(
  manager: Manager,
  options: ManagerOptions,
  spec: PodSpec & { uid: string },
): Promise<void> {
  const before = manager.pod(spec.uid).toJSON();
  const [memory, pool] = [manager.memory(), String(manager.sharedPool())];
  const again = await reopened(manager, options);
  const after = await admit(again, spec);
  expect({ ...after.toJSON(), alreadyAdmitted: true }).toEqual(before);
  expect([again.memory(), String(again.sharedPool())]).toEqual([memory, pool]);
}

describe('A: wrong results of the kubelet', () => {
  it('A4: full-pcpus-only hands out whole cores only', async () => {
    const cpus = [0, 1, 2, 3].flatMap((core) => [
      [core, core, core >> 1, core >> 1],
      [core + 4, core, core >> 1, core >> 1],
    ]);
    const nodes = [0, 1].map((id) => ({ id, cpuLess: false, distances: null }));
    const topology = await discover({ json: { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes } });
    const manager = await simulate(topology, {
      reservedSystemCPUs: '0-1',
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    // The kubelet gives 4 and 5, whose siblings are reserved.
    expect(cpusOf(await admit(manager, pod('a', 2, '1Mi')))).toEqual(['2,6']);
  });

  it('A4: where free cores do not add up and memory is nowhere, memory is the reason', async () => {
    const cpus = [0, 0, 2, 2, 4].map((core, cpu) => [cpu, core, 0, 0]);
    const nodes = [{ id: 0, cpuLess: false, distances: null, memory: 4 * GI, hugepages: [] }];
    const topology = await discover({ json: { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes } });
    const manager = await simulate(topology, {
      reservedSystemCPUs: '4',
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    const reasonOf = async (spec: PodSpec) => (await errorOf(() => admit(manager, spec))).details.reason;
    expect(await reasonOf(pod('cores', 1, '1Gi'))).toBe('SMTAlignmentError');
    expect(await reasonOf(pod('memory', 1, '9Gi'))).toBe('UnexpectedAdmissionError');
    const later = {
      uid: 'later',
      containers: [...pod('a', 1, '1Gi').containers, guaranteed('b', { cpu: 1, memory: '9Gi' })],
    };
    expect(await reasonOf(later)).toBe('UnexpectedAdmissionError');
    // The kubelet finds too few CPUs for the second container before it looks for memory.
    const wide = {
      uid: 'wide',
      containers: [...pod('a', 1, '1Gi').containers, guaranteed('b', { cpu: 9, memory: '9Gi' })],
    };
    expect(await reasonOf(wide)).toBe('SMTAlignmentError');
  });

  it('A5: no single node is taken out of a group that shares its memory, and what is booked can be read again', async () => {
    const topology = await machineOf([0, 1, 2].map(() => ({ cpus: 4, memory: 8 * GI })));
    const options = { reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }] };
    const manager = await simulate(topology, options);
    const first = await admit(manager, pod('A', '500m', '9Gi'));
    expect(nodesOf(first)).toEqual([[[0, 1]]]);
    expect(nodesOf(await admit(manager, pod('hog', 4, '6Gi')))).toEqual([[[2]]]);
    expect(nodesOf(await admit(manager, pod('B', '500m', '5Gi')))).toEqual([[[0, 1]]]);
    await first.release();
    // The kubelet books it on node 0 alone, and does not start again.
    const last = await admit(manager, pod('b', 1, '512Mi'));
    expect(last.container('main').hint.nodes?.toArray()).toEqual([0]);
    expect(nodesOf(last)).toEqual([[[0, 1]]]);
    const memory = manager.memory();
    const again = await reopened(manager, options);
    expect(again.memory()).toEqual(memory);
    const free = again
      .memory()
      .filter(({ node }) => node < 2)
      .reduce((sum, table) => sum + table.free, 0);
    expect(free).toBe(15 * GI - 5 * GI - 512 * MI);
  });

  it('A6: the shared pool is never used up, with strictly reserved CPUs either', async () => {
    const options = { reservedSystemCPUs: '0', strictCPUReservation: true };
    const manager = await simulate('package:1 core:4 pu:1', options);
    const error = await errorOf(() => admit(manager, pod('all', 3, '1Mi')));
    expect(error).toMatchObject({
      code: 'ERR_INSUFFICIENT_CPUS',
      details: { reason: 'UnexpectedAdmissionError' },
    });
    expect(cpusOf(await admit(manager, pod('two', 2, '1Mi')))).toEqual(['1-2']);
    expect(String((await reopened(manager, options)).sharedPool())).toBe('3');
  });
});

describe('B: running pods that the kubelet rejects after a restart stay as they are', () => {
  it('B1: with full-pcpus-only and no free core left for them', async () => {
    const options = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
    const manager = await simulate('package:1 core:4 pu:2', options);
    const spec = pod('most', 6, '1Mi');
    await admit(manager, spec);
    await expectStays(manager, options, spec);
  });

  it('B2: with align-by-socket, on more NUMA nodes than their number of CPUs needs', async () => {
    const options = {
      policy: 'restricted' as const,
      cpuManagerPolicyOptions: { 'align-by-socket': true },
    };
    const manager = await simulate('package:2 numa:2 core:4 pu:1', options);
    await admit(manager, pod('first', 3, '1Mi'));
    const spec = pod('split', 3, '1Mi');
    await admit(manager, spec);
    await admit(manager, pod('third', 2, '1Mi'));
    await expectStays(manager, options, spec);
  });

  it('B3: even if the memory of their init containers belongs to another pod by now', async () => {
    const topology = await machineOf([{ cpus: 4, memory: 8 * GI }]);
    const manager = await simulate(topology);
    const spec = {
      uid: 'web',
      initContainers: [guaranteed('migrate', { cpu: '500m', memory: '6Gi' })],
      containers: [guaranteed('main', { cpu: '500m', memory: '1Gi' })],
    };
    const admitted = await admit(manager, spec);
    // What main needs it takes over.
    expect(admitted.containers.map(({ memory }) => memory.map(({ bytes }) => bytes))).toEqual([
      [5 * GI],
      [GI],
    ]);
    expect(await errorOf(() => admit(manager, pod('next', '500m', '6Gi')))).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
    });
    await admitted.markStarted('main');
    expect(admitted.container('migrate').memory).toEqual([]);
    await admit(manager, pod('next', '500m', '6Gi'));
    await expectStays(manager, {}, spec);
  });

  it('B4: in pod scope, where the first container has less memory than the pod', async () => {
    const options = { scope: 'pod', policy: 'single-numa-node' } as const;
    const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
    const manager = await simulate(topology, options);
    const spec = {
      uid: 'two',
      containers: [guaranteed('a', { cpu: 1, memory: '1Gi' }), guaranteed('b', { cpu: 1, memory: '2Gi' })],
    };
    await admit(manager, spec);
    await expectStays(manager, options, spec);
  });

  it('B5: with the hint that they had, and with nothing booked twice', async () => {
    const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
    const manager = await simulate(topology);
    const filler = await admit(manager, pod('filler', 3, '1Gi'));
    const spec = {
      uid: 'late',
      initContainers: [guaranteed('setup', { cpu: 2, memory: '3Gi' })],
      containers: [guaranteed('main', { cpu: 2, memory: '2Gi' })],
    };
    await admit(manager, spec);
    // On the emptier machine it would be placed elsewhere.
    await filler.release();
    await expectStays(manager, {}, spec);
  });
});

describe('C: crashes of the kubelet', () => {
  it('C1: prefer-closest-numa-nodes works where NUMA ids have gaps', async () => {
    const distances = [
      [10, 40, 80, 80],
      [40, 10, 80, 80],
      [80, 80, 10, 20],
      [80, 80, 20, 10],
    ];
    const ids = [0, 8, 9, 17];
    const topology = await machineOf(
      ids.map((id, i) => ({ id, cpus: 4, memory: 8 * GI, distances: distances[i]! })),
    );
    const manager = await simulate(topology, {
      topologyManagerPolicyOptions: { 'prefer-closest-numa-nodes': true },
    });
    expect(nodesOf(await admit(manager, pod('wide', 6, '9Gi')))).toEqual([[[9, 17]]]);
  });

  it('C2: a hugepage size that not every node has can be asked for', async () => {
    const topology = await machineOf([
      { cpus: 4, memory: 8 * GI },
      { cpus: 4, memory: 8 * GI, hugepages: { [1024 * 1024]: 2 } },
    ]);
    const manager = await simulate(topology, { policy: 'single-numa-node' });
    const admitted = await admit(manager, pod('huge', 2, '1Gi', { 'hugepages-1Gi': '2Gi' }));
    expect(admitted.container('main').memory).toEqual([
      { nodes: [1], type: 'memory', bytes: GI },
      { nodes: [1], type: 'hugepages-1Gi', bytes: 2 * GI },
    ]);
    expect(cpusOf(admitted)).toEqual(['4-5']);
  });
});

describe('D: hints that allocation cannot keep', () => {
  const policies = [
    ['none', 'ERR_INSUFFICIENT_MEMORY', 'UnexpectedAdmissionError'],
    ['best-effort', 'ERR_INSUFFICIENT_MEMORY', 'UnexpectedAdmissionError'],
    ['restricted', 'ERR_TOPOLOGY_AFFINITY', 'TopologyAffinityError'],
    ['single-numa-node', 'ERR_TOPOLOGY_AFFINITY', 'TopologyAffinityError'],
  ] as const;

  it.each(policies)(
    'D1: memory that is nowhere is no possible hint, under %s',
    async (policy, code, reason) => {
      const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
      const manager = await simulate(topology, { policy });
      manager.registerDevices('example.com/gpu', [{ id: 'gpu0', numaNodes: [0] }]);
      const before = [manager.memory(), String(manager.freeCpus())];
      const greedy = pod('greedy', 2, '17Gi', { 'example.com/gpu': 1 });
      expect(await errorOf(() => admit(manager, greedy))).toMatchObject({ code, details: { reason } });
      expect([manager.memory(), String(manager.freeCpus())]).toEqual(before);
      const admitted = await admit(manager, pod('modest', 2, '1Gi', { 'example.com/gpu': 1 }));
      expect(admitted.container('main').devices).toEqual({ 'example.com/gpu': [{ id: 'gpu0', nodes: [0] }] });
    },
  );

  it('D9: what the first containers of a rejected pod got is free again at once', async () => {
    const topology = await machineOf([0, 1].map(() => ({ cpus: 4, memory: 8 * GI })));
    const manager = await openManager({ topology });
    manager.registerDevices('example.com/gpu', [{ id: 'gpu0', numaNodes: [0] }]);
    const before = [manager.memory(), manager.grants(), String(manager.freeCpus())];
    const spec = {
      containers: [
        guaranteed('first', { cpu: 2, memory: '4Gi', 'example.com/gpu': 1 }),
        guaranteed('second', { cpu: 2, memory: '1Gi', 'example.com/gpu': 1 }),
      ],
    };
    const error = await errorOf(() => admit(manager, spec));
    expect(error).toMatchObject({
      code: 'ERR_INSUFFICIENT_DEVICES',
      details: { reason: 'UnexpectedAdmissionError' },
    });
    expect([manager.memory(), manager.grants(), String(manager.freeCpus())]).toEqual(before);
    await admit(manager, pod('next', 2, '8Gi', { 'example.com/gpu': 1 }));
  });
});

describe('P: pods with resources as a whole', () => {
  const GATES = { kubeletVersion: 'v1.36', featureGates: { PodLevelResourceManagers: true } } as const;
  const OPTIONS = { ...GATES, reservedSystemCPUs: '0', scope: 'pod' } as const;
  const machine = () => discover({ synthetic: 'package:2 numa:1(memory=8GiB) core:4 pu:2' });
  const whole = (uid: string, limits: ResourceAmounts, ...containers: ContainerSpec[]) => ({
    uid,
    resources: { requests: limits, limits },
    containers,
  });
  const OWN = guaranteed('own', { cpu: 2, memory: '512Mi' });
  const LEFT = { cpu: 4, memory: '2Gi' };

  it.each(['best-effort', 'restricted', 'single-numa-node'] as const)(
    'P1: under %s a restart rejects none, and books none a second time',
    async (policy) => {
      const options = { ...OPTIONS, policy };
      const manager = await simulate(await machine(), options);
      const spec = whole('web', LEFT, OWN, { name: 'shared' });
      const admitted = await admit(manager, spec);
      expect(cpusOf(admitted)).toEqual(['2-3', '4-5']);
      await expectStays(manager, options, spec);
    },
  );

  it.each(['none', 'best-effort', 'restricted', 'single-numa-node'] as const)(
    'P2: under %s a container that shares asks for no memory, and rejects none',
    async (policy) => {
      const options = { ...GATES, reservedSystemCPUs: '0', policy };
      const manager = await simulate(await machine(), options);
      const admitted = await admit(manager, whole('web', LEFT, OWN, { name: 'shared' }));
      expect(admitted.booking).toBeNull();
      expect(admitted.containers.map(({ isolation }) => isolation)).toEqual(['container', 'host']);
      expect(admitted.containers.map(({ memory }) => memory.map(({ bytes }) => bytes))).toEqual([
        [512 * MI],
        [],
      ]);
      expect(String(manager.sharedPool())).toBe('0-1,4-15');
    },
  );

  it('P3: full-pcpus-only holds within the pod: whole cores to exclusive containers, and to the rest', async () => {
    const manager = await simulate(await machine(), {
      ...OPTIONS,
      reservedSystemCPUs: '0-1',
      policy: 'restricted',
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    // The kubelet gives 3 of 4 CPUs to the one, and the sibling of a thread of its own to the other.
    const three = guaranteed('three', { cpu: 3, memory: '512Mi' });
    expect(await errorOf(() => admit(manager, whole('a', LEFT, three, { name: 'shared' })))).toMatchObject({
      code: 'ERR_SMT_ALIGNMENT',
      details: { reason: 'SMTAlignmentError', value: 3 },
    });
    expect(cpusOf(await admit(manager, whole('b', LEFT, OWN, { name: 'shared' })))).toEqual(['2-3', '4-5']);
  });

  it('P4: devices are booked at admission, and no device is promised twice', async () => {
    const manager = await simulate(await machine(), OPTIONS);
    manager.registerDevices('example.com/gpu', [{ id: 'gpu0', numaNodes: [1] }]);
    const near = guaranteed('near', { cpu: 2, memory: '512Mi', 'example.com/gpu': 1 });
    const first = await admit(manager, whole('first', LEFT, near, { name: 'shared' }));
    expect(first.container('near').devices).toEqual({ 'example.com/gpu': [{ id: 'gpu0', nodes: [1] }] });
    const before = [manager.memory(), String(manager.sharedPool())];
    expect(
      await errorOf(() => admit(manager, whole('second', LEFT, near, { name: 'shared' }))),
    ).toMatchObject({
      code: 'ERR_INSUFFICIENT_DEVICES',
      details: { reason: 'UnexpectedAdmissionError' },
    });
    expect([manager.memory(), String(manager.sharedPool())]).toEqual(before);
  });
});
