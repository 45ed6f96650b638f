// needs: nothing
// The kubelet's files and numalign's record agree, in both directions.
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  formatCpuManagerState,
  formatMemoryManagerState,
  parseCpuManagerState,
  parseMemoryManagerState,
} from '../../lib/entries/kubelet.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { AdmissionError, CpuSet, type Manager, openManager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const machine = () =>
  machineOf([
    { cpus: 8, memory: 8 * GI, hugepages: { 2048: 64 } },
    { cpus: 8, memory: 8 * GI, hugepages: { 2048: 64 } },
  ]);

/** A manager of the machine that keeps nothing on disk. */
async function inMemory(topology: Topology, options = {}): Promise<Manager> {
  const manager = await openManager({ topology, ...options });
  onTestFinished(() => manager.close());
  return manager;
}

const cpuFile = (entries: Record<string, Record<string, string>>, defaultCpuSet = '') =>
  formatCpuManagerState({
    policyName: 'static',
    defaultCpuSet: CpuSet.parse(defaultCpuSet),
    entries: new Map(
      Object.entries(entries).map(([uid, pod]) => [
        uid,
        new Map(Object.entries(pod).map(([name, cpus]) => [name, CpuSet.parse(cpus)])),
      ]),
    ),
  });

describe('exportKubelet', () => {
  it('writes the exclusive CPUs of containers, and the rest as the shared pool', async () => {
    const manager = await simulate('package:1 core:4 pu:2', { reservedSystemCPUs: '0' });
    await manager.admit(
      { uid: 'pod', containers: [guaranteed('a', { cpu: 1 }), { name: 'b', requests: { cpu: 1 } }] },
      { owner: 'persistent', smt: 'hold-sibling' },
    );
    expect(manager.pod('pod').container('a').cpus).toBeNull();
    const grant = await manager.acquire({ cpu: 1, name: 'gateway', smt: 'hold-sibling' });
    const { defaultCpuSet, entries } = parseCpuManagerState(manager.exportKubelet().cpuManagerState);
    expect(entries).toEqual(new Map([[grant.uid, new Map([['main', grant.cpus.union(grant.held)]])]]));
    expect(defaultCpuSet).toEqual(manager.sharedPool());
  });

  it('of policies without exclusive resources equals the kubelet’s files', async () => {
    const policies = { cpuManagerPolicy: 'none', memoryManagerPolicy: 'None' } as const;
    const manager = await inMemory(await machine(), policies);
    expect(manager.exportKubelet()).toEqual({
      cpuManagerState: '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
      memoryManagerState: '{"policyName":"None","machineState":{},"checksum":4236770233}',
    });
  });

  it('counts hugepages as ordinary memory too, like the kubelet', async () => {
    const reservedMemory = [{ numaNode: 0, limits: { memory: '1Gi' } }];
    const manager = await inMemory(await machine(), { reservedMemory });
    const { machineState } = parseMemoryManagerState(manager.exportKubelet().memoryManagerState);
    const pages = BigInt(128 * MI);
    const gi = BigInt(GI);
    expect(machineState.get(0)).toEqual({
      numberOfAssignments: 0,
      memoryMap: new Map([
        [
          'hugepages-2Mi',
          { total: pages, systemReserved: 0n, allocatable: pages, reserved: 0n, free: pages },
        ],
        [
          'memory',
          {
            total: 8n * gi,
            systemReserved: gi,
            allocatable: 7n * gi - pages,
            reserved: 0n,
            free: 7n * gi - pages,
          },
        ],
      ]),
      cells: [0],
    });
  });
});

describe('importKubelet', () => {
  it('makes the pods persistent grants with their CPUs and memory', async () => {
    const topology = await machine();
    const from = await inMemory(topology);
    const limits = { cpu: 2, memory: '9Gi', 'hugepages-2Mi': '4Mi' };
    await from.admit({ uid: 'pod', containers: [{ name: 'main', limits }] }, { owner: 'persistent' });
    const to = await inMemory(topology);
    const { pods, verified } = await to.importKubelet(from.exportKubelet());
    expect(verified).toBe(true);
    expect(pods.map(({ uid }) => uid)).toEqual(['pod']);
    expect(to.memory()).toEqual(from.memory());
    expect(to.sharedPool()).toEqual(from.sharedPool());
    const { cpus, memory } = from.pod('pod').container('main');
    expect(to.pod('pod').container('main')).toMatchObject({
      kind: 'app',
      cpus,
      memory,
      hint: { nodes: null },
    });
    expect(to.grants()[0]).toMatchObject({
      uid: 'pod',
      name: 'pod',
      owner: { kind: 'persistent', pid: null },
    });
    // Admitted with the same request, it keeps its place.
    const again = await to.admit({ uid: 'pod', containers: [{ name: 'main', limits }] });
    expect(again.alreadyAdmitted).toBe(true);
    await to.release('pod');
    expect(to.exportKubelet()).toEqual((await inMemory(topology)).exportKubelet());
  });

  it('works beside existing grants, and reads either file alone', async () => {
    const topology = await machine();
    const manager = await inMemory(topology);
    const { cpus } = await manager.acquire({ cpu: 2, memory: '1Gi' });
    const file = cpuFile({ pod: { a: '12-13', b: '13-14' } });
    await manager.importKubelet({ cpuManagerState: file, memoryManagerState: null });
    expect(manager.sharedPool()).toEqual(topology.cpus.difference(cpus).difference(CpuSet.parse('12-14')));
    const from = await inMemory(topology);
    await from.acquire({ cpu: 1, memory: '1Gi' });
    const { memoryManagerState } = from.exportKubelet();
    const { pods } = await manager.importKubelet({ cpuManagerState: null, memoryManagerState });
    expect(pods[0]!.containers[0]!.cpus).toBeNull();
    expect(manager.memory().find(({ node, type }) => node === 0 && type === 'memory')?.reserved).toBe(2 * GI);
  });

  it('reports a file without a checksum, which it takes only on request', async () => {
    const manager = await inMemory(await machine());
    const cpuManagerState = cpuFile({ pod: { a: '4' } }).replace(/\d+\}$/, '0}');
    const files = { cpuManagerState, memoryManagerState: null };
    expect(await errorOf(() => manager.importKubelet(files))).toMatchObject({ code: 'ERR_KUBELET_STATE' });
    expect(await manager.importKubelet(files, { allowUnverified: true })).toMatchObject({ verified: false });
  });

  it.each<[string, string, RegExp]>([
    ['CPUs of a live grant', cpuFile({ pod: { a: '0-1' } }), /pod pod has CPUs 0, which grant .* holds/],
    [
      'CPUs of another pod',
      cpuFile({ p: { a: '4-5' }, q: { a: '5-6' } }),
      /pod q has CPUs 5, which pod p also has/,
    ],
    [
      'CPUs of its own shared pool',
      cpuFile({ p: { a: '4-5' } }, '5-6'),
      /CPUs 5, which are in the files' shared pool/,
    ],
    ['reserved CPUs', cpuFile({ p: { a: '15' } }), /CPUs 15, which are reserved/],
    ['CPUs that are not managed', cpuFile({ p: { a: '11' } }), /CPUs 11, which numalign does not manage/],
    ['CPUs that are not there', cpuFile({ p: { a: '16-17' } }), /CPUs 16-17, which are not online/],
  ])('refuses %s, and takes over nothing', async (_, cpuManagerState, message) => {
    const manager = await inMemory(await machine(), { reservedSystemCPUs: '15', managedCPUs: '0-10,12-15' });
    await manager.acquire({ cpu: 1 });
    const before = manager.generation();
    const error = await errorOf(() => manager.importKubelet({ cpuManagerState, memoryManagerState: null }));
    expect(error).toMatchObject({ code: 'ERR_KUBELET_IMPORT', message: expect.stringMatching(message) });
    expect(manager.generation()).toBe(before);
  });

  it('refuses to take the last shared CPU, and a pod that is on record', async () => {
    const manager = await inMemory(await machine());
    const importCpus = (entries: Record<string, Record<string, string>>) =>
      manager.importKubelet({ cpuManagerState: cpuFile(entries), memoryManagerState: null });
    expect(await errorOf(() => importCpus({ p: { a: '0-15' } }))).toMatchObject({
      code: 'ERR_KUBELET_IMPORT',
      message: expect.stringContaining('shared pool'),
    });
    await importCpus({ p: { a: '0' } });
    expect(await errorOf(() => importCpus({ p: { a: '0' } }))).toMatchObject({
      code: 'ERR_POD_CONFLICT',
      details: { value: 'p' },
    });
  });

  it('refuses memory that does not add up, does not exist, or overlaps groups of nodes in force', async () => {
    const topology = await machine();
    const from = await inMemory(topology);
    await from.acquire({ cpu: 1, memory: '9Gi' });
    const state = parseMemoryManagerState(from.exportKubelet().memoryManagerState);
    const [uid, containers] = [...state.entries][0]!;
    const [name, [block]] = [...containers][0]! as [
      string,
      [{ numaAffinity: number[]; type: string; size: bigint }],
    ];
    const with_ = (change: object) =>
      formatMemoryManagerState({
        ...state,
        entries: new Map([[uid, new Map([[name, [{ ...block, ...change }]]])]]),
      });
    const manager = await inMemory(topology);
    const importMemory = (memoryManagerState: string) =>
      errorOf(() => manager.importKubelet({ cpuManagerState: null, memoryManagerState }));
    for (const change of [
      { size: block.size + 1n },
      { size: 2n ** 63n },
      { numaAffinity: [0] },
      { numaAffinity: [1, 0] },
      { numaAffinity: [0, 7] },
      { numaAffinity: [] },
      { type: 'cpu' },
    ]) {
      expect(await importMemory(with_(change))).toMatchObject({ code: 'ERR_KUBELET_IMPORT' });
    }
    const { memoryManagerState } = from.exportKubelet();
    const grant = await manager.acquire({ cpu: 1, memory: '1Gi' });
    expect(await importMemory(memoryManagerState)).toMatchObject({ code: 'ERR_KUBELET_IMPORT' });
    await grant.release();
    const small = await machineOf([
      { cpus: 8, memory: GI },
      { cpus: 8, memory: GI },
    ]);
    const error = await errorOf(async () =>
      (await inMemory(small)).importKubelet({ cpuManagerState: null, memoryManagerState }),
    );
    expect(error).toMatchObject({
      code: 'ERR_KUBELET_IMPORT',
      message: expect.stringContaining('would be booked'),
    });
    await manager.importKubelet({ cpuManagerState: null, memoryManagerState });
  });

  it('refuses invalid files and options', async () => {
    const manager = await inMemory(await machine());
    const calls: [unknown, unknown?][] = [
      [undefined],
      [{}],
      [{ cpuManagerState: null, memoryManagerState: null }],
      [{ cpuManagerState: 1, memoryManagerState: null }],
      [{ cpu_manager_state: '{}' }],
      [{ cpuManagerState: '{}' }, { allowUnverified: 1 }],
      [{ cpuManagerState: '{}' }, { runningContainers: 1 }],
      [{ cpuManagerState: '{}' }, { signal: 1 }],
      [{ cpuManagerState: '{}' }, { force: true }],
    ];
    for (const [files, options] of calls) {
      expect(await errorOf(() => manager.importKubelet(files as never, options as never))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      });
    }
  });
});

// ---- the law

const admissions = fc.array(
  fc.record({
    containers: fc.array(
      fc.record({
        isInit: fc.boolean(),
        cpu: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constant('500m')),
        memory: fc.integer({ min: 1, max: 5 * GI }),
        pages: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20 })),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    isStarted: fc.boolean(),
    isReleased: fc.boolean(),
    hold: fc.boolean(),
  }),
  { maxLength: 5 },
);
type Admissions = typeof admissions extends fc.Arbitrary<infer T> ? T : never;

async function fill(manager: Manager, list: Admissions): Promise<void> {
  const admitted: (() => Promise<void>)[] = [];
  for (const [i, { containers, isStarted, isReleased, hold }] of list.entries()) {
    const all = containers.map(({ cpu, memory, pages }, at) =>
      guaranteed(`c${at}`, { cpu, memory, ...(pages > 0 && { 'hugepages-2Mi': `${2 * pages}Mi` }) }),
    );
    const isInit = (at: number) => containers[at]!.isInit && at < all.length - 1;
    const pod = {
      uid: `pod-${i}`,
      initContainers: all.filter((_, at) => isInit(at)),
      containers: all.filter((_, at) => !isInit(at)),
    };
    try {
      const placed = await manager.admit(pod, { owner: 'persistent', ...(hold && { smt: 'hold-sibling' }) });
      if (isStarted) await placed.markStarted(placed.containers.at(-1)!.name);
      if (isReleased) admitted.push(() => placed.release());
    } catch (error) {
      if (!(error instanceof AdmissionError)) throw error;
    }
  }
  for (const release of admitted) await release();
}

describe('any grants', () => {
  it('are the same after an export, an import and an export, and so are shared pool and free memory', async () => {
    const machines = [
      await machine(),
      await machineOf([
        { cpus: 6, memory: 8 * GI, hugepages: { 2048: 8 } },
        { cpus: 0, memory: 4 * GI },
        { cpus: 4, memory: 2 * GI, hugepages: { 2048: 8 } },
      ]),
      await discover({ synthetic: 'package:2 [numa(memory=8GB)] core:3 pu:2' }),
    ];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...machines), admissions, async (topology, list) => {
        const [from, to] = [await openManager({ topology }), await openManager({ topology })];
        await fill(from, list);
        const files = from.exportKubelet();
        await to.importKubelet(files);
        expect(to.exportKubelet()).toEqual(files);
        expect(to.sharedPool()).toEqual(from.sharedPool());
        expect(to.memory()).toEqual(from.memory());
        const taken = new Set(to.grants().map(({ uid }) => uid));
        for (const { uid } of from.grants()) {
          if (!taken.has(uid)) expect(from.pod(uid).containers.every(holdsNothing)).toBe(true);
        }
      }),
      { numRuns: budget({ all: 500, usual: 60 }) },
    );
  });
});

function holdsNothing({ cpus, held, memory }: ReturnType<Manager['pod']>['containers'][number]): boolean {
  return cpus === null && held.isEmpty && memory.length === 0;
}

describe('pods with pod-level resources', () => {
  const options = {
    featureGates: { PodLevelResourceManagers: true },
    scope: 'pod',
    policy: 'restricted',
  } as const;
  const limits = { cpu: 4, memory: '2Gi' };
  const pod = {
    uid: 'web',
    resources: { requests: limits, limits },
    containers: [guaranteed('own', { cpu: 2, memory: '512Mi' }), { name: 'a' }, { name: 'b' }],
  };

  it('are exported and imported with their booking', async () => {
    const from = await inMemory(await machine(), options);
    await from.admit(pod, { owner: 'persistent' });
    const files = from.exportKubelet();
    expect(files.cpuManagerState).toContain('"podEntries":{"web":{"cpuSet":"0-3"}}');
    expect(files.memoryManagerState).toContain(
      `"podEntries":{"web":{"memoryBlocks":[{"numaAffinity":[0],"type":"memory","size":${2 * GI}}]}}`,
    );
    const to = await inMemory(await machine(), options);
    const { pods, verified } = await to.importKubelet(files);
    expect(verified).toBe(true);
    expect(JSON.parse(JSON.stringify(pods[0]))).toMatchObject({
      booking: { cpus: '0-3', memory: [{ bytes: 2 * GI }] },
      containers: [
        { name: 'a', isolation: 'pod', cpus: '2-3' },
        { name: 'b', isolation: 'pod', cpus: '2-3' },
        { name: 'own', isolation: 'container', cpus: '0-1' },
      ],
    });
    expect(to.exportKubelet()).toEqual(files);
    const older = await inMemory(await machine());
    expect((await errorOf(() => older.importKubelet(files))).code).toBe('ERR_KUBELET_STATE');
    expect(older.grants()).toEqual([]);
  });

  it('are refused if the files contradict themselves', async () => {
    const manager = await inMemory(await machine(), options);
    const file = (cpuSet: string, entries: string[]) =>
      formatCpuManagerState({
        policyName: 'static',
        defaultCpuSet: CpuSet.parse('8-15'),
        entries: new Map(entries.map((uid) => [uid, new Map([['c', CpuSet.parse('1-2')]])])),
        podEntries: new Map([['web', { cpuSet: CpuSet.parse(cpuSet) }]]),
      });
    for (const [text, why] of [
      [file('1-4', []), 'pod web has CPUs or memory as a whole, and no container'],
      [file('2-4', ['web']), 'container c of pod web has CPUs that the pod as a whole does not have'],
    ] as const) {
      const error = await errorOf(() =>
        manager.importKubelet({ cpuManagerState: text, memoryManagerState: null }),
      );
      expect(error.code).toBe('ERR_KUBELET_IMPORT');
      expect(error.message).toContain(why);
    }
    expect(manager.grants()).toEqual([]);
  });
});
