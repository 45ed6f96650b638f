// needs: nothing
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../lib/entries/diagnostics.js';
import { discover, HintFamily, type HintProvider } from '../../lib/entries/topology.js';
import {
  AdmissionError,
  CpuSet,
  type Manager,
  type ManagerOptions,
  NodeSet,
  openManager,
} from '../../lib/index.js';
import { cpuTimeOf } from '../support/cpu-time.js';
import { DeviceProvider } from '../support/device-provider.js';
import { errorOf } from '../support/error-of.js';
import { guaranteed, simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

// Two sockets of one NUMA node and four cores of two threads: node 0 has CPUs 0-7, node 1 has 8-15,
// siblings are neighbours.
const MACHINE = 'package:2 numa:1 core:4 pu:2';

const pod = (cpu: number | string, more: Record<string, number | string> = {}) => ({
  containers: [guaranteed('main', { cpu, ...more })],
});
const cpusOf = (admitted: { containers: readonly { cpus: CpuSet | null }[] }) =>
  admitted.containers.map(({ cpus }) => cpus?.toString() ?? null);

describe('a pod', () => {
  it('gets exclusive CPUs for containers with whole CPUs only if it is Guaranteed', async () => {
    const manager = await simulate(MACHINE);
    expect(cpusOf(await manager.admit(pod(2)))).toEqual(['0-1']);
    expect(cpusOf(await manager.admit(pod('1500m')))).toEqual([null]);
    const burstable = {
      containers: [{ name: 'main', requests: { cpu: 1 }, limits: { cpu: 2, memory: '1Gi' } }],
    };
    expect(cpusOf(await manager.admit(burstable))).toEqual([null]);
    expect(cpusOf(await manager.admit({ containers: [{ name: 'main' }] }))).toEqual([null]);
    const mixed = { containers: [guaranteed('a', { cpu: 2 }), guaranteed('b', { cpu: '100m' })] };
    expect(cpusOf(await manager.admit(mixed))).toEqual(['2-3', null]);
    expect(String(manager.sharedPool())).toBe('4-15');
  });

  it('gives the CPUs of its init containers to later ones, but not those of a sidecar', async () => {
    const manager = await simulate(MACHINE);
    const admitted = await manager.admit({
      uid: 'web',
      initContainers: [
        guaranteed('prepare', { cpu: 4 }),
        { ...guaranteed('proxy', { cpu: 2 }), restartPolicy: 'Always' },
        guaranteed('migrate', { cpu: 2 }),
      ],
      containers: [guaranteed('app', { cpu: 4 })],
    });
    const of = (name: string) => admitted.container(name).cpus!;
    // prepare has ended when proxy starts, so its CPUs are used again; proxy keeps its own.
    expect(String(of('prepare'))).toBe('0-3');
    expect(of('proxy').isSubsetOf(of('prepare'))).toBe(true);
    expect(of('app').intersects(of('proxy'))).toBe(false);
    expect(admitted.containers.map(({ name, kind }) => [name, kind])).toEqual([
      ['prepare', 'init'],
      ['proxy', 'sidecar'],
      ['migrate', 'init'],
      ['app', 'app'],
    ]);
    await admitted.release();
    expect(String(manager.sharedPool())).toBe('0-15');
    expect((await errorOf(() => admitted.release())).code).toBe('ERR_UNKNOWN_GRANT');
    expect((await errorOf(() => admitted.container('unknown'))).code).toBe('ERR_UNKNOWN_CONTAINER');
  });

  it('is admitted whole or not at all', async () => {
    const manager = await simulate(MACHINE);
    const greedy = { containers: [guaranteed('small', { cpu: 2 }), guaranteed('large', { cpu: 15 })] };
    expect((await errorOf(() => manager.admit(greedy))).code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(manager.grants()).toEqual([]);
    expect(String(manager.sharedPool())).toBe('0-15');
  });

  it('keeps its place when admitted again, even after a restart and under other options', async () => {
    const stateDir = makeStateDir();
    const first = await simulate(MACHINE, { stateDir });
    const request = { uid: 'web', ...pod(4) };
    await first.admit(pod(2), { owner: 'persistent' });
    const before = await first.admit(request, { owner: 'persistent' });
    const generation = first.generation();
    first.close();
    const again = await simulate(MACHINE, {
      stateDir,
      policy: 'single-numa-node',
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    const placed = await again.admit(request);
    expect([placed.containers, placed.alreadyAdmitted, placed.policy]).toEqual([
      before.containers,
      true,
      'best-effort',
    ]);
    expect(again.plan(request).containers).toEqual(before.containers);
    expect(again.generation()).toBe(generation);
    const error = await errorOf(() => again.admit({ uid: 'web', ...pod(2) }));
    expect(error.code).toBe('ERR_POD_CONFLICT');
    await again.release('web');
    expect(cpusOf(await again.admit({ uid: 'web', ...pod(2) }))).toEqual(['2-3']);
  });

  it('without a uid needs a name that is unique in its namespace', async () => {
    const manager = await simulate(MACHINE);
    const named = (namespace: string) => ({
      ...{ apiVersion: 'v1', kind: 'Pod' as const, metadata: { name: 'web', namespace } },
      spec: { containers: [{ name: 'main', resources: { limits: { cpu: '1', memory: '64Mi' } } }] },
    });
    const { uid } = await manager.admit(named('prod'));
    expect(await errorOf(() => manager.admit(named('prod')))).toMatchObject({
      code: 'ERR_POD_CONFLICT',
      details: { value: 'web', valid: uid },
    });
    await manager.admit(named('test'));
    await manager.release(uid);
    await manager.admit(named('prod'));
  });

  it('that this process owns cannot be admitted into a closed manager', async () => {
    const manager = await simulate(MACHINE);
    manager.close();
    expect((await errorOf(() => manager.admit(pod(1)))).code).toBe('ERR_MANAGER_CLOSED');
  });

  it('is on disk with its hint, kinds and requests', async () => {
    const manager = await simulate(MACHINE, { scope: 'pod' });
    await manager.admit({ uid: 'web', name: 'web-1', ...pod(2) });
    const state = membersOf(manager.stateDir);
    expect(state.pods[0]).toMatchObject({ uid: 'web', name: 'web-1', policy: 'best-effort', scope: 'pod' });
    expect(state.pods[0].containers[0]).toMatchObject({
      name: 'main',
      kind: 'app',
      request: { cpu: 2000, memory: 64 * 2 ** 20 },
      cpus: '0-1',
      hint: { nodes: [0], preferred: true },
    });
  });
});

describe('the text of a pod', () => {
  it('is no pod: it must be parsed first', async () => {
    const manager = await simulate(MACHINE);
    for (const text of ['kind: Pod\n', Buffer.from('kind: Pod\n')]) {
      const error = await errorOf(() => manager.admit(text as never));
      expect([error.code, error.message]).toEqual([
        'ERR_INVALID_POD',
        'the pod must be an object, not text: parse it first',
      ]);
    }
  });
});

describe('plan', () => {
  it('decides like admit, and changes nothing', async () => {
    const manager = await simulate(MACHINE, { policy: 'restricted' });
    await manager.admit(pod(3));
    for (const cpu of [1, 5, 7, 9, 12, 13]) {
      const { generation, grants } = { generation: manager.generation(), grants: manager.grants() };
      const plan = manager.plan(pod(cpu));
      expect(plan.generation).toBe(generation);
      expect([manager.generation(), manager.grants()]).toEqual([generation, grants]);
      const admitted = await manager.admit(pod(cpu)).catch((error: AdmissionError) => error);
      if (admitted instanceof AdmissionError) {
        expect(plan).toMatchObject({ admitted: false, code: admitted.code, reason: admitted.details.reason });
        expect(plan.explanation?.text).toBe(admitted.details.explanation.text);
        continue;
      }
      expect(plan).toMatchObject({ admitted: true, reason: null, explanation: null, exact: true });
      expect(plan.containers).toEqual(admitted.containers);
      expect(plan.hints[0]!.merged.hint).toEqual(admitted.containers[0]!.hint);
      expect(admitted.alreadyAdmitted).toBe(false);
      await admitted.release();
    }
  });

  it('has custom providers allocate and release at once', async () => {
    const manager = await simulate(MACHINE, { policy: 'single-numa-node' });
    const gpus = new DeviceProvider('example.com/gpu', [1, 1]);
    manager.addHintProvider(gpus);
    const both = (name: string) => guaranteed(name, { cpu: 1, 'example.com/gpu': 1 });
    const { containers } = manager.plan({ containers: [both('a'), both('b')] });
    // The second provider sees what the first took.
    expect(containers.map(({ hint }) => hint.nodes?.toArray())).toEqual([[0], [1]]);
    expect(gpus.free().length).toBe(2);
  });

  it('answers well under 10 ms on 34 nodes of which 2 have CPUs, and on 64 nodes with uneven free CPUs', async () => {
    const base = (await discover({ synthetic: 'package:2 numa:1 core:8 pu:2' })).toJSON();
    const nodes = Array.from({ length: 34 }, (_, id) => ({
      id,
      cpuLess: id >= 2,
      distances: null,
      memory: 2 ** 34,
    }));
    const memoryOnly = await discover({ json: { ...base, nodes } });
    const large = await discover({ synthetic: 'package:8 numa:8 core:8 pu:2' });
    for (const [topology, cpu] of [
      [memoryOnly, 20],
      [large, 40],
    ] as const) {
      const manager = await openManager({ topology, stateDir: makeStateDir() });
      for (let i = 0; i < 8; i++) await manager.admit(pod(i % 3 === 0 ? 2 : 1));
      const times = Array.from({ length: 20 }, () =>
        cpuTimeOf(() => expect(manager.plan(pod(cpu))).toMatchObject({ admitted: true, exact: true })),
      );
      // Not a benchmark: a search that explodes takes seconds.
      expect(times.sort((a, b) => a - b)[10]).toBeLessThan(100);
      manager.close();
    }
  });
});

describe('a rejection', () => {
  it('explains itself: the request, free and possible resources, the hints, the holders, and policies that would admit', async () => {
    const manager = await simulate(MACHINE, {
      policy: 'single-numa-node',
      reservedSystemCPUs: '0-1',
    });
    await manager.admit({ uid: 'db', name: 'database', ...pod(5) });
    const error = await errorOf(() => manager.admit({ uid: 'web', ...pod(9) }));
    expect(error).toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY', name: 'AdmissionError' });
    expect(error.details).toMatchObject({ reason: 'TopologyAffinityError', reserved: '0-1' });
    const explanation = error.details.explanation as Explanation;
    expect(explanation).toMatchObject({
      reason: 'TopologyAffinityError',
      container: 'main',
      policy: 'single-numa-node',
      admittedUnder: ['restricted', 'best-effort', 'none'],
    });
    const [cpu] = explanation.resources;
    expect(cpu).toMatchObject({
      resource: 'cpu',
      asked: 9,
      nodes: [
        { node: 0, free: 1, possible: 6 },
        { node: 1, free: 8, possible: 8 },
      ],
      holders: [{ uid: 'db', name: 'database', pid: process.pid }],
    });
    expect(cpu!.hints?.toJSON()).toEqual([{ nodes: '0-1', preferred: true }]);
    expect(explanation.text.split('\n')).toEqual([
      'TopologyAffinityError: container main: the resources cannot be aligned as single-numa-node asks',
      'cpu: 9 requested; free by NUMA node: 0: 1 of 6, 1: 8 of 8',
      '  hints: {0-1} preferred',
      '  reserved: 0-1',
      expect.stringMatching(/^ {2}held by "database" of process \d+: /),
      'restricted would admit it now, single-numa-node does not',
    ]);
    expect(error.message).not.toContain('\n');
    expect(error.message).toContain('held by "database"');
  });

  it('of a pod that would leave no shared CPU says how many can be granted, and what is free before it', async () => {
    const manager = await simulate('package:1 core:2 pu:1');
    const error = await errorOf(() => manager.acquire({ cpu: 2 }));
    expect(error.message.split('; ')).toEqual([
      '2 exclusive CPUs requested: one of the CPUs 0-1 must stay shared',
      'at most 1 can be granted now',
      'cpu: free by NUMA node: 0: 2 of 2',
      'hints: {0} preferred',
      'no policy would admit it now',
    ]);
    expect(error).toMatchObject({
      code: 'ERR_INSUFFICIENT_CPUS',
      details: { value: 2, valid: '1', holders: [] },
    });
    await manager.acquire({ cpu: 1 });
    const last = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect(last.message).toMatch(
      /^1 exclusive CPU requested: CPU 1 must stay shared; none can be granted now; /,
    );
    expect(last.details.valid).toBe('none now');
  });

  it.each([
    ['CPUs', {}, 9, '1 to 7', { cpu: 7 }],
    ['CPUs', {}, 8, '1 to 7', { cpu: 7 }],
    ['whole cores', { smt: 'hold-sibling' }, 5, '1 to 3', { cpu: 3 }],
    ['whole cores', { smt: 'hold-sibling' }, 4, '1 to 3', { cpu: 3 }],
    ['full cores', { cpuManagerPolicyOptions: { 'full-pcpus-only': true } }, 8, '1 to 6', { cpu: 6 }],
  ] as const)(
    'says how many %s can be had with %j instead of %i, and these can be',
    async (_, options, cpu, valid, most) => {
      const manager = await simulate('package:1 core:4 pu:2', { policy: 'none' });
      const error = await errorOf(() => manager.acquire({ ...options, cpu }));
      expect([error.details.value, error.details.valid]).toEqual([cpu, valid]);
      await manager.acquire({ ...options, ...most });
    },
  );

  it('has the kubelet’s reason', async () => {
    const manager = await simulate(MACHINE, { cpuManagerPolicyOptions: { 'full-pcpus-only': true } });
    const reasons = async (cpu: number, policy: 'none' | 'restricted') => {
      const { code, details } = await errorOf(() => manager.admit(pod(cpu), { policy }));
      return [code, details.reason];
    };
    expect(await reasons(3, 'restricted')).toEqual(['ERR_SMT_ALIGNMENT', 'SMTAlignmentError']);
    expect(await reasons(18, 'none')).toEqual(['ERR_SMT_ALIGNMENT', 'SMTAlignmentError']);
    expect(await reasons(18, 'restricted')).toEqual(['ERR_TOPOLOGY_AFFINITY', 'TopologyAffinityError']);
    expect(await reasons(16, 'none')).toEqual(['ERR_INSUFFICIENT_CPUS', 'UnexpectedAdmissionError']);
  });

  it('has the holders of a custom provider, if it reports them, and the pod’s own resources', async () => {
    const manager = await simulate(MACHINE, { policy: 'single-numa-node' });
    manager.addHintProvider(new DeviceProvider('example.com/gpu', [1, 1]));
    manager.addHintProvider({
      ...{ name: 'odd', hints: () => ({ odd: null }), allocate() {}, release() {} },
      amounts: (async () => {
        throw new Error('unknown');
      }) as never,
    });
    const { explanation } = manager.plan({
      containers: [
        guaranteed('a', { cpu: 2, 'example.com/gpu': 1 }),
        guaranteed('b', { cpu: 2, 'example.com/gpu': 2 }),
      ],
    });
    const [cpu, gpu, odd] = explanation!.resources;
    expect(gpu).toMatchObject({ resource: 'example.com/gpu', provider: 'example.com/gpu', asked: 2 });
    expect(gpu!.nodes).toEqual([
      { node: 0, free: 0, possible: 1 },
      { node: 1, free: 1, possible: 1 },
    ]);
    expect(odd!.nodes).toEqual([]);
    expect(cpu!.holders).toEqual([{ uid: '', name: 'the pod itself', holds: '0-1', pid: null }]);
  });

  it('names no policy if none would admit', async () => {
    const manager = await simulate(MACHINE, { policy: 'restricted' });
    const { explanation } = (await errorOf(() => manager.admit(pod(17)))).details as {
      explanation: Explanation;
    };
    expect(explanation.admittedUnder).toEqual([]);
    expect(explanation.text).toMatch(/no policy would admit it now$/);
  });
});

describe('a rejection on a machine of many nodes', () => {
  it.each<[string, string, number]>([
    ['64 nodes with CPUs', 'package:8 numa:8 core:2 pu:1', 80],
    ['34 nodes', 'package:2 numa:17 core:2 pu:1', 40],
    ['17 nodes', 'numa:17 core:2 pu:1', 30],
  ])('is fast, and can be printed: %s', async (_, synthetic, cpu) => {
    const manager = await simulate(synthetic, { policy: 'single-numa-node' });
    const time = cpuTimeOf(() => {
      const plan = manager.plan(pod(cpu));
      expect(plan.reason).toBe('TopologyAffinityError');
      expect(plan.explanation?.text).toContain('hints: {');
      expect(JSON.stringify(plan).length).toBeGreaterThan(100);
      expect(JSON.stringify(manager.plan(pod(2), { policy: 'none' })).length).toBeGreaterThan(100);
    });
    // Not a benchmark: walking all masks would never end.
    expect(time).toBeLessThan(2000);
  });

  it('is the kubelet’s answer to more CPUs than any machine has', async () => {
    const manager = await simulate(MACHINE);
    const reason = (policy: 'none' | 'restricted') => manager.plan(pod(70_000), { policy }).reason;
    expect([reason('none'), reason('restricted')]).toEqual([
      'UnexpectedAdmissionError',
      'TopologyAffinityError',
    ]);
  });
});

describe('full-pcpus-only', () => {
  it('gives no half of a core whose other half is reserved', async () => {
    const manager = await simulate(MACHINE, {
      reservedSystemCPUs: '0,2',
      cpuManagerPolicyOptions: { 'full-pcpus-only': true },
    });
    expect(cpusOf(await manager.admit(pod(4)))).toEqual(['4-7']);
    expect(cpusOf(await manager.admit(pod(8)))).toEqual(['8-15']);
    expect((await errorOf(() => manager.admit(pod(2)))).code).toBe('ERR_SMT_ALIGNMENT');
  });

  it('never splits a core of a machine with cores of different sizes', async () => {
    const columns = ['cpu', 'core', 'socket', 'numa', 'uncoreCache'];
    const cores = [0, 0, 2, 2, 4, 5, 6];
    const cpus = cores.map((core, cpu) => [cpu, core, 0, 0, 0]);
    const topology = await discover({
      json: { columns, cpus, nodes: [{ id: 0, cpuLess: false, distances: null }] },
    });
    const options: ManagerOptions = { topology, cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
    const manager = await openManager({ ...options, stateDir: makeStateDir() });
    for (let left = 6; left > 0; left--) {
      const admitted = await manager.admit(pod(1)).catch(() => undefined);
      const cpus = admitted?.containers[0]?.cpus;
      if (!cpus) break;
      expect(topology.wholeCores(cpus)).toEqual(cpus);
    }
    expect(String(manager.sharedPool())).toBe('0-3');
    expect(cpusOf(await manager.admit(pod(2)))).toEqual(['0-1']);
    manager.close();
  });
});

describe("smt: 'hold-sibling'", () => {
  it('runs on one thread per core and holds the others', async () => {
    const manager = await simulate(MACHINE);
    const [container] = (await manager.admit(pod(3), { smt: 'hold-sibling' })).containers;
    expect([String(container!.cpus), String(container!.held)]).toEqual(['0,2,4', '1,3,5']);
    expect(String(manager.sharedPool())).toBe('6-15');
    expect(cpusOf(await manager.admit(pod(2)))).toEqual(['6-7']);
    const grant = await manager.acquire({ cpu: 1, smt: 'hold-sibling' });
    expect([String(grant.cpus), String(grant.held)]).toEqual(['8', '9']);
  });

  it('is explained in cores', async () => {
    const manager = await simulate(MACHINE);
    const { explanation } = manager.plan(pod(9), { smt: 'hold-sibling', policy: 'restricted' });
    expect(explanation!.resources[0]!.nodes).toEqual([
      { node: 0, free: 4, possible: 4 },
      { node: 1, free: 4, possible: 4 },
    ]);
  });

  it('counts cores, not CPUs: a node of four cores holds four such CPUs', async () => {
    const manager = await simulate(MACHINE, { policy: 'single-numa-node' });
    expect(manager.plan(pod(5), { smt: 'hold-sibling' }).reason).toBe('TopologyAffinityError');
    const [container] = (await manager.admit(pod(4), { smt: 'hold-sibling' })).containers;
    expect(container!.hint).toEqual({ nodes: NodeSet.of(0), preferred: true });
    expect([String(container!.cpus), String(container!.held)]).toEqual(['0,2,4,6', '1,3,5,7']);
  });
});

describe('the machine’s options', () => {
  const kubelet = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    cpuManagerPolicy: 'static',
    cpuManagerPolicyOptions: { 'full-pcpus-only': 'true', 'strict-cpu-reservation': 'true' },
    policy: 'restricted',
    scope: 'pod',
    systemReserved: { cpu: '500m', memory: '1Gi' },
    kubeReserved: { cpu: '1200m' },
    maxPods: 110,
  };

  it('may be a KubeletConfiguration, with other options taking precedence', async () => {
    const manager = await simulate(MACHINE, { kubeletConfiguration: kubelet });
    expect(manager.settings()).toEqual({
      managedCPUs: CpuSet.parse('0-15'),
      reservedSystemCPUs: CpuSet.parse('0-1'),
      isolatedCPUs: CpuSet.EMPTY,
      cgroupRoot: null,
      strictCPUReservation: true,
      reservedMemory: {},
      kubeletVersion: 'v1.36',
      featureGates: {
        PodLevelResources: true,
        PodLevelResourceManagers: false,
        DRAExtendedResource: true,
      },
    });
    expect(String(manager.sharedPool())).toBe('2-15');
    expect(manager.plan(pod(3)).reason).toBe('SMTAlignmentError');
    const lenient = await simulate(MACHINE, {
      kubeletConfiguration: kubelet,
      cpuManagerPolicyOptions: {},
      policy: 'none',
      reservedSystemCPUs: '15',
    });
    expect(String(lenient.settings().reservedSystemCPUs)).toBe('15');
    // No whole core: 14 is the sibling of the reserved CPU.
    expect(cpusOf(lenient.plan(pod(3)))).toEqual(['8-9,14']);
  });

  it('beside a KubeletConfiguration replace only the settings that they name', async () => {
    const document = {
      ...kubelet,
      reservedSystemCPUs: '3',
      cpuManagerPolicyOptions: { 'strict-cpu-reservation': 'True' },
    };
    const settingsWith = async (options: ManagerOptions) => {
      const settings = (await simulate(MACHINE, { kubeletConfiguration: document, ...options })).settings();
      return [String(settings.reservedSystemCPUs), settings.strictCPUReservation];
    };
    expect(await settingsWith({})).toEqual(['3', true]);
    expect(await settingsWith({ systemReserved: { memory: '1Gi' } })).toEqual(['3', true]);
    // The document's own 1200m, rounded up.
    expect(await settingsWith({ systemReserved: { cpu: 1 } })).toEqual(['0-2', true]);
    const without = { ...document, reservedSystemCPUs: undefined };
    const options = { kubeletConfiguration: without, systemReserved: { memory: '1Gi' } };
    expect(await settingsWith(options)).toEqual(['0-1', true]);
    expect(await settingsWith({ cpuManagerPolicyOptions: { 'full-pcpus-only': true } })).toEqual(['3', true]);
    expect(await settingsWith({ strictCPUReservation: false })).toEqual(['3', false]);
  });

  it('give no exclusive CPUs to acquire under the CPU policy none, and say so', async () => {
    const manager = await simulate(MACHINE, { cpuManagerPolicy: 'none' });
    const error = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect([error.code, error.details.option]).toEqual(['ERR_INVALID_OPTION', 'cpuManagerPolicy']);
    expect((await errorOf(() => manager.admit(pod(1), { smt: 'hold-sibling' }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
  });

  it('of an empty KubeletConfiguration are Kubernetes’ defaults: no exclusive CPUs, no alignment', async () => {
    const manager = await simulate(MACHINE, { kubeletConfiguration: { kind: 'KubeletConfiguration' } });
    const admitted = await manager.admit(pod(2));
    expect(admitted.containers[0]).toMatchObject({ cpus: null, hint: { nodes: null, preferred: false } });
  });

  it('reserve CPUs by amount, by best fit, and agree with the same number on record', async () => {
    const stateDir = makeStateDir();
    const systemReserved = { cpu: '1500m' };
    const reserved = (manager: Manager) => String(manager.settings().reservedSystemCPUs);
    expect(reserved(await simulate(MACHINE, { stateDir, reservedSystemCPUs: '7,15' }))).toBe('7,15');
    expect(reserved(await simulate(MACHINE, { stateDir, systemReserved }))).toBe('7,15');
    const conflict = await errorOf(() => simulate(MACHINE, { stateDir, kubeReserved: { cpu: 3 } }));
    expect(conflict.code).toBe('ERR_CONFIG_CONFLICT');
    const spread = {
      cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': true },
      systemReserved: { cpu: 10 },
    };
    expect(reserved(await simulate(MACHINE, spread))).toBe('0-4,8-12');
    expect((await errorOf(() => simulate(MACHINE, { systemReserved: { cpu: 17 } }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
    const manager = await simulate(MACHINE);
    expect(String((await manager.configure({ systemReserved })).reservedSystemCPUs)).toBe('0-1');
  });

  it.each<[string, ManagerOptions]>([
    [
      'full-pcpus-only with distribute-cpus-across-cores',
      { cpuManagerPolicyOptions: { 'full-pcpus-only': true, 'distribute-cpus-across-cores': true } },
    ],
    [
      'distribution over nodes with L3 alignment',
      {
        cpuManagerPolicyOptions: {
          'distribute-cpus-across-numa': true,
          'prefer-align-cpus-by-uncorecache': true,
        },
      },
    ],
    [
      'distribution over nodes with distribution over cores',
      {
        cpuManagerPolicyOptions: {
          'distribute-cpus-across-numa': 'true',
          'distribute-cpus-across-cores': 'true',
        },
      },
    ],
    [
      'L3 alignment with distribution over cores',
      {
        cpuManagerPolicyOptions: {
          'prefer-align-cpus-by-uncorecache': true,
          'distribute-cpus-across-cores': true,
        },
      },
    ],
    [
      'align-by-socket with single-numa-node',
      { policy: 'single-numa-node', cpuManagerPolicyOptions: { 'align-by-socket': true } },
    ],
    [
      'options with the CPU policy none',
      { cpuManagerPolicy: 'none', cpuManagerPolicyOptions: { 'full-pcpus-only': true } },
    ],
    [
      'strict reservation that contradicts itself',
      { strictCPUReservation: false, cpuManagerPolicyOptions: { 'strict-cpu-reservation': true } },
    ],
    ['an unknown option', { cpuManagerPolicyOptions: { 'full-cpus-only': true } as object }],
    ['an unknown policy', { policy: 'best' as 'none' }],
    ['an unknown scope', { scope: 'node' as 'pod' }],
    ['a negative reservation', { systemReserved: { cpu: -1 } }],
    ['a KubeletConfiguration of another kind', { kubeletConfiguration: { kind: 'Pod' } }],
  ])('are refused with the kubelet’s errors: %s', async (_, options) => {
    const stateDir = makeStateDir();
    expect((await errorOf(() => simulate(MACHINE, { stateDir, ...options }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
    expect(() => readFileSync(join(stateDir, 'state.json'))).toThrow();
  });

  it('must fit the machine: sockets within NUMA nodes for align-by-socket, and at most the allowed number of nodes', async () => {
    const socketsInNode = 'numa:1 package:2 core:2 pu:1';
    const aligned: ManagerOptions = { cpuManagerPolicyOptions: { 'align-by-socket': true } };
    expect((await errorOf(() => simulate(socketsInNode, aligned))).message).toMatch(
      /more sockets \(2\) than NUMA nodes/,
    );
    const tenNodes = 'numa:10 core:2 pu:1';
    const limited: ManagerOptions = { topologyManagerPolicyOptions: { 'max-allowable-numa-nodes': '8' } };
    expect((await errorOf(() => simulate(tenNodes, limited))).message).toMatch(/10 NUMA nodes, more than 8/);
    await simulate(tenNodes, { ...limited, policy: 'none' });
    await simulate(tenNodes);
    const manager = await simulate(tenNodes, { ...limited, policy: 'none' });
    expect((await errorOf(() => manager.admit(pod(1), { policy: 'restricted' }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
  });

  it('of one request do not change those of others', async () => {
    const manager = await simulate(MACHINE);
    const spread = { cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': true } } as const;
    expect(cpusOf(manager.plan(pod(10), { ...spread, policy: 'none' }))).toEqual(['0-4,8-12']);
    expect(cpusOf(manager.plan(pod(10)))).toEqual(['0-9']);
    const strict = { cpuManagerPolicyOptions: { 'strict-cpu-reservation': true } } as const;
    expect((await errorOf(() => manager.plan(pod(1), strict))).message).toMatch(/setting of the machine/);
  });
});

describe('a custom hint provider', () => {
  const quiet: HintProvider = { name: 'fpga', hints: () => null, allocate: () => {}, release: () => {} };

  it.each<[string, Partial<HintProvider>, string]>([
    [
      'throws in hints',
      {
        hints: () => {
          throw new Error('no bitstream');
        },
      },
      'hints',
    ],
    [
      'throws in allocate',
      {
        allocate: () => {
          throw new Error('no bitstream');
        },
      },
      'allocate',
    ],
    [
      'throws no Error',
      {
        allocate: () => {
          throw 'no bitstream';
        },
      },
      'allocate',
    ],
    [
      'returns a promise of hints',
      { hints: (async () => null) as unknown as HintProvider['hints'] },
      'hints',
    ],
    [
      'returns a promise that fails',
      {
        allocate: (async () => {
          throw new Error('late');
        }) as unknown as HintProvider['allocate'],
      },
      'allocate',
    ],
    ['returns a list instead of an object', { hints: () => [] as never }, 'hints'],
    [
      'returns hints of another shape',
      { hints: () => ({ fpga: [{ nodes: 0, preferred: true }] }) as never },
      'hints',
    ],
    [
      'names a node that is not there',
      { hints: () => ({ fpga: [{ nodes: NodeSet.of(9), preferred: true }] }) },
      'hints',
    ],
  ])('that %s rolls the admission back', async (_, methods, method) => {
    const manager = await simulate(MACHINE);
    const gpus = new DeviceProvider('example.com/gpu', [1, 1]);
    manager.addHintProvider(gpus);
    manager.addHintProvider({ ...quiet, ...methods });
    const error = await errorOf(() => manager.admit(pod(2, { 'example.com/gpu': 1 })));
    expect(error).toMatchObject({ code: 'ERR_HINT_PROVIDER', details: { value: 'fpga', method } });
    expect(error.message).toMatch(/^the hint provider fpga failed in /);
    expect(gpus.free().length).toBe(2);
    expect([manager.grants(), String(manager.sharedPool())]).toEqual([[], '0-15']);
  });

  it('is asked for the pod in scope pod, with its peak needs', async () => {
    const manager = await simulate(MACHINE, { scope: 'pod' });
    const asked: unknown[] = [];
    manager.addHintProvider({
      ...quiet,
      hints: ({ container, requests, dryRun }) => {
        asked.push([container, requests, dryRun]);
        return null;
      },
      allocate: ({ container, requests, kind }, { nodes }) => {
        asked.push([container, kind, requests.fpga ?? 0, nodes?.toArray()]);
      },
      release: ({ pod: { uid, name } }) => asked.push(['released', uid, name]),
    });
    const admitted = await manager.admit({
      uid: 'u',
      name: 'n',
      initContainers: [guaranteed('prepare', { cpu: 1, fpga: 3 })],
      containers: [guaranteed('a', { cpu: 1, fpga: 1 }), guaranteed('b', { cpu: 1 })],
    });
    await admitted.release();
    expect(asked).toEqual([
      [null, { memory: 2 * 64 * 2 ** 20, cpu: 2000, fpga: 3 }, false],
      ['prepare', 'init', 3, [0]],
      ['a', 'app', 1, [0]],
      ['b', 'app', 0, [0]],
      ['released', 'u', 'n'],
    ]);
  });

  it('releases its allocation when the commit fails', async () => {
    const manager = await simulate(MACHINE);
    const gpus = new DeviceProvider('example.com/gpu', [1, 1]);
    manager.addHintProvider(gpus);
    // After the devices are allocated, and before the commit.
    const removeFolder = () => rmSync(manager.stateDir, { recursive: true });
    manager.addHintProvider({ ...quiet, name: 'remover', allocate: removeFolder });
    await errorOf(() => manager.admit(pod(1, { 'example.com/gpu': 1 })));
    expect(gpus.free().length).toBe(2);
  });

  it('may be an object of a class, but must be a provider under a unique name', async () => {
    const manager = await simulate(MACHINE);
    manager.addHintProvider(new DeviceProvider('example.com/gpu', [1, 1]));
    for (const provider of [
      new DeviceProvider('example.com/gpu', [1]),
      { name: 'x' },
      null,
      { ...quiet, name: '' },
      { ...quiet, relese() {} },
    ]) {
      const error = await errorOf(() => manager.addHintProvider(provider as HintProvider));
      expect(error.code).toBe('ERR_INVALID_OPTION');
    }
  });

  it('loses no allocation to a plan for the pod that is being admitted', async () => {
    const manager = await simulate(MACHINE, { stateDir: makeStateDir() });
    const held = new Set<string>();
    manager.addHintProvider({
      ...quiet,
      allocate: ({ pod: { uid } }) => void held.add(uid),
      release: ({ pod: { uid } }) => void held.delete(uid),
    });
    const request = { uid: 'web', ...pod(1) };
    const admitting = manager.admit(request);
    while (!held.has('web')) await new Promise(setImmediate);
    manager.plan(request);
    await admitting;
    expect([...held]).toEqual(['web']);
  });

  it('learns of the release of a pod, whichever process released it', async () => {
    const stateDir = makeStateDir();
    const [manager, other] = [await simulate(MACHINE, { stateDir }), await simulate(MACHINE, { stateDir })];
    const gpus = new DeviceProvider('example.com/gpu', [1, 1]);
    manager.addHintProvider(gpus);
    const request = (uid: string) => ({ uid, ...pod(1, { 'example.com/gpu': 1 }) });
    await manager.admit(request('a'));
    await manager.admit(request('b'));
    await other.release('a');
    await manager.admit(request('c'));
    expect(gpus.nodesOf('a', 'main')).toEqual([]);
    await manager.pod('b').release();
    await manager.release('c');
    expect(gpus.free().length).toBe(2);
  });

  it('learns of the release of pods of another manager, or of restored ones', async () => {
    const stateDir = makeStateDir();
    const released: string[] = [];
    const open = async () => {
      const manager = await simulate(MACHINE, { stateDir });
      manager.addHintProvider({ ...quiet, release: ({ pod: { uid } }) => void released.push(uid) });
      return manager;
    };
    await (await open()).admit({ uid: 'a', ...pod(1) }, { owner: 'persistent' });
    const later = await open();
    await later.release('a');
    expect(released).toEqual(['a']);
    await later.admit({ uid: 'b', ...pod(1) });
    const plain = await simulate(MACHINE, { stateDir });
    await plain.release('b');
    await plain.admit({ uid: 'b', ...pod(1) });
    await later.admit({ uid: 'c', ...pod(1) });
    expect(released).toEqual(['a', 'b']);
  });

  it('whose release fails for another pod does not fail an admission, and is asked again', async () => {
    const stateDir = makeStateDir();
    const [manager, other] = [await simulate(MACHINE, { stateDir }), await simulate(MACHINE, { stateDir })];
    let calls = 0;
    manager.addHintProvider({
      ...quiet,
      release: () => {
        if (++calls === 1) throw new Error('stuck');
      },
    });
    await manager.admit({ uid: 'a', ...pod(1) });
    await other.release('a');
    const warned = once(process, 'warning');
    await manager.admit({ uid: 'b', ...pod(1) });
    expect((await warned)[0].message).toMatch(/^pod a: the hint provider fpga failed in release\(\): stuck$/);
    await manager.admit({ uid: 'c', ...pod(1) });
    expect(calls).toBe(2);
  });

  it('releases at once its allocation for a request whose quiet is out of reach', async () => {
    const manager = await simulate(MACHINE);
    const releases: string[] = [];
    manager.addHintProvider({ ...quiet, release: ({ pod }) => void releases.push(pod.name) });
    const request = { name: 'loud', cpu: 2, quiet: true, require: { quiet: ['interrupts' as const] } };
    const error = await errorOf(() => manager.acquire(request));
    expect(error.code).toBe('ERR_QUIET');
    expect(releases).toEqual(['loud']);
    expect(manager.grants()).toEqual([]);
  });

  it('whose release fails causes a warning, and the pod is released nevertheless', async () => {
    const manager = await simulate(MACHINE);
    const failing = () => {
      throw new Error('stuck');
    };
    manager.addHintProvider({ ...quiet, release: failing });
    const grant = await manager.acquire({ cpu: 2 });
    expect((await errorOf(() => grant.release())).code).toBe('ERR_HINT_PROVIDER');
    expect([grant.isReleased, manager.grants()]).toEqual([true, []]);
    await grant.release();
    const rejected = await errorOf(() => manager.admit(pod(17)));
    expect(rejected.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(rejected.details.rollback).toMatchObject({ code: 'ERR_HINT_PROVIDER' });
  });

  it('has its hints counted whatever the name of its resource', async () => {
    const manager = await simulate(MACHINE, { policy: 'restricted' });
    const named = (name: string, hints: HintProvider['hints']) =>
      manager.addHintProvider({ ...quiet, name, hints });
    const fine = [{ nodes: NodeSet.of(0), preferred: true }];
    named('A', () => ({ gpu: fine }));
    named('B', () => ({ 'gpu of B': [], gpu: null, cpu: fine, ['__proto__']: fine }));
    const error = await errorOf(() => manager.admit(pod('500m')));
    expect(error.code).toBe('ERR_TOPOLOGY_AFFINITY');
    const { resources } = error.details.explanation as Explanation;
    expect(resources.map(({ provider, resource }) => [provider, resource])).toEqual([
      ['A', 'gpu'],
      ['B', 'gpu of B'],
      ['B', 'gpu'],
      ['B', 'cpu'],
      ['B', '__proto__'],
    ]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws where it is looked at',
      () =>
        Object.defineProperty({}, 'then', {
          get() {
            throw new Error('no');
          },
        }),
    ],
    ['has a promise inside', () => ({ fpga: Promise.reject(new Error('late')) })],
    [
      'throws null while it is read',
      () => ({
        fpga: {
          [Symbol.iterator]() {
            throw null;
          },
        },
      }),
    ],
    ['is a family of no hints', () => ({ fpga: new HintFamily(Uint32Array.of(7, 2, 0), [0, 1]) })],
  ])('whose answer %s fails as one', async (_, hints) => {
    const manager = await simulate(MACHINE);
    manager.addHintProvider({ ...quiet, hints: hints as HintProvider['hints'] });
    expect((await errorOf(() => manager.admit(pod(1)))).code).toBe('ERR_HINT_PROVIDER');
    await new Promise(setImmediate);
  });

  it('cannot change the decision or the record', async () => {
    const manager = await simulate(MACHINE, { scope: 'pod' });
    manager.addHintProvider({
      ...quiet,
      hints: ({ requests }) => {
        expect(() => Object.assign(requests, { cpu: 7000 })).toThrow(TypeError);
        return null;
      },
      allocate: (_, hint) => expect(() => Object.assign(hint, { nodes: null })).toThrow(TypeError),
    });
    expect((await manager.acquire({ cpu: 2 })).cpus.size).toBe(2);
    const { uid } = await manager.admit(pod(1));
    expect(() => Object.assign(manager.getAffinity(uid, 'main'), { preferred: 'no' })).toThrow(TypeError);
  });

  it('is asked for resources whatever their names', async () => {
    const manager = await simulate(MACHINE, { scope: 'pod' });
    const asked: unknown[] = [];
    const hints: HintProvider['hints'] = ({ requests }) => {
      asked.push(requests.constructor);
      return null;
    };
    manager.addHintProvider({ ...quiet, hints });
    await manager.admit({
      containers: [guaranteed('a', { cpu: 1, constructor: 2 }), guaranteed('b', { cpu: 1 })],
    });
    expect(asked).toEqual([2]);
  });

  it('takes part in acquire too', async () => {
    const manager = await simulate(MACHINE);
    manager.addHintProvider({
      ...quiet,
      hints: () => ({ fpga: [{ nodes: NodeSet.of(1), preferred: true }] }),
    });
    const grant = await manager.acquire({ cpu: 2 });
    expect(String(grant.cpus)).toBe('8-9');
    await grant.release();
  });
});
