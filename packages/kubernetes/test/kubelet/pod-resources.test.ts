import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { CpuSet, openManager } from 'numalign';
import { formatMemoryManagerState } from 'numalign/kubelet';
import { discover } from 'numalign/topology';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { holdingsOfFiles, holdingsOfList, type PodHoldings } from '../../lib/kubelet/holdings.js';
import { recordOf } from '../../lib/kubelet/kubelet-record.js';
import { PodResources } from '../../lib/kubelet/pod-resources.js';
import { KubeletFolder } from './kubelet-folder.js';

let kubelet: KubeletFolder;
beforeEach(() => {
  kubelet = new KubeletFolder();
});
afterEach(() => kubelet.remove());

const ask = (options = {}) => new PodResources({ ...kubelet.options, ...options });
const container = (name: string, cpu_ids: number[] = [], rest = {}) => ({ name, cpu_ids, ...rest });
const pod = (name: string, ...containers: object[]) => ({ namespace: 'default', name, containers });

/** Without the classes of sets. */
const plain = (pods: readonly PodHoldings[]) =>
  pods.map(({ containers, ...rest }) => ({
    ...rest,
    containers: containers.map((each) => ({ ...each, cpus: `${each.cpus}` })),
  }));
const held = (name: string, cpus: string) => ({ name, cpus, memory: [], devices: {} });

describe('What the kubelet has given out', () => {
  it('is its list: CPUs, memory and devices with their NUMA nodes', async () => {
    kubelet.writeCpus('0', { u1: { main: '2-3' } });
    const topology = { nodes: [{ ID: 0 }, { ID: 1 }] };
    await kubelet.list([
      pod(
        'a',
        container('main', [2, 3], {
          memory: [{ memory_type: 'hugepages-2Mi', size: 2 ** 40, topology }],
          devices: [
            { resource_name: 'vendor.com/nic', device_ids: ['n0', 'n1'], topology: { nodes: [{ ID: 0 }] } },
            { resource_name: 'vendor.com/nic', device_ids: ['n2'] },
          ],
        }),
      ),
    ]);
    expect(plain(await ask().holdings())).toEqual([
      {
        ...{ namespace: 'default', name: 'a', uid: 'u1' },
        containers: [
          {
            ...{ name: 'main', cpus: '2-3' },
            memory: [{ nodes: [0, 1], type: 'hugepages-2Mi', bytes: 2 ** 40 }],
            devices: {
              'vendor.com/nic': [
                { id: 'n0', nodes: [0] },
                { id: 'n1', nodes: [0] },
                { id: 'n2', nodes: [] },
              ],
            },
          },
        ],
      },
    ]);
  });

  it('omits pods and containers that hold nothing', async () => {
    kubelet.writeCpus('0-3', {});
    await kubelet.list([pod('shared', container('main')), pod('none')]);
    expect(await ask().holdings()).toEqual([]);
  });

  it('does not have the shared CPUs that kubelets before 1.21 list', async () => {
    kubelet.writeCpus('0,2-3', { u1: { main: '1' } });
    await kubelet.list([
      pod('shared', container('main', [0, 2, 3])),
      pod('own', container('main', [1]), container('side', [0, 2, 3])),
    ]);
    expect(plain(await ask().holdings())).toEqual([
      { namespace: 'default', name: 'own', uid: 'u1', containers: [held('main', '1')] },
    ]);
  });

  it('includes entries of the file that the list lacks', async () => {
    kubelet.writeCpus('0', { u1: { main: '1' }, u2: { main: '2' } });
    await kubelet.list([pod('a', container('main', [1]))]);
    expect(plain(await ask().holdings())).toEqual([
      { namespace: 'default', name: 'a', uid: 'u1', containers: [held('main', '1')] },
      { namespace: '', name: 'u2', uid: 'u2', containers: [held('main', '2')] },
    ]);
  });

  it('is the list of a newer kubelet if its file is unreadable', async () => {
    await kubelet.list([pod('a', container('main', [1]))], {
      GetAllocatableResources: () => ({ cpu_ids: [1, 2] }),
    });
    expect(plain(await ask().holdings())).toEqual([
      { namespace: 'default', name: 'a', containers: [held('main', '1')] },
    ]);
  });

  it('is unknown if an older kubelet lists CPUs and its file is unreadable', async () => {
    await kubelet.list([pod('a', container('main', [1]))]);
    await expect(ask().holdings()).rejects.toMatchObject({
      code: 'ERR_POD_RESOURCES',
      details: { value: 'UNIMPLEMENTED' },
    });
  });

  it('is read from its files if it does not listen', async () => {
    kubelet.writeCpus('0', { u1: { main: '1' } });
    kubelet.write(
      'memory_manager_state',
      formatMemoryManagerState({
        policyName: 'Static',
        machineState: new Map(),
        entries: new Map([['u1', new Map([['main', [{ numaAffinity: [0], type: 'memory', size: 4096n }]]])]]),
      }),
    );
    const entry = {
      ...{ PodUID: 'u2', ContainerName: 'main', ResourceName: 'vendor.com/nic', AllocResp: '' },
      DeviceIDs: { '0': ['n0'], '-1': ['n1'] },
    };
    kubelet.write(
      'kubelet_internal_checkpoint',
      JSON.stringify({ Data: { PodDeviceEntries: [entry], RegisteredDevices: {} }, Checksum: 1 }),
      kubelet.deviceFolder,
    );
    kubelet.kill();
    expect(plain(await ask().holdings())).toEqual([
      {
        ...{ namespace: '', name: 'u1', uid: 'u1' },
        containers: [{ ...held('main', '1'), memory: [{ nodes: [0], type: 'memory', bytes: 4096 }] }],
      },
      {
        ...{ namespace: '', name: 'u2', uid: 'u2' },
        containers: [
          {
            ...held('main', ''),
            devices: {
              'vendor.com/nic': [
                { id: 'n0', nodes: [0] },
                { id: 'n1', nodes: [] },
              ],
            },
          },
        ],
      },
    ]);
  });

  it('is empty if no kubelet has ever run', async () => {
    expect(await ask().holdings()).toEqual([]);
  });

  it('is unknown if a file is damaged', async () => {
    kubelet.writeCpus('0', { u1: { main: '1' } });
    kubelet.write('cpu_manager_state', '{"policyName":"static","defaultCpuSet":"0-9","checksum":1}');
    await expect(ask().holdings()).rejects.toMatchObject({ code: 'ERR_KUBELET_STATE' });
    kubelet.writeCpus('0', {});
    for (const text of ['', '[]', '{"Data":{"PodDeviceEntries":[{"PodUID":1}]}}']) {
      writeFileSync(`${kubelet.deviceFolder}/kubelet_internal_checkpoint`, text);
      await expect(ask().holdings()).rejects.toMatchObject({ code: 'ERR_KUBELET_STATE' });
    }
  });

  it('is not taken from the files of a kubelet that runs and does not answer', async () => {
    kubelet.writeCpus('0', { u1: { main: '1' } });
    await kubelet.answer({ List: () => new Promise(() => {}) });
    await expect(ask({ timeoutMs: 50 }).holdings()).rejects.toMatchObject({
      code: 'ERR_POD_RESOURCES',
      details: { value: 'DEADLINE_EXCEEDED' },
    });
  });

  it('is refused if the kubelet lists impossible CPUs', async () => {
    await kubelet.list([pod('a', container('main', [70_000]))]);
    await expect(ask().holdings()).rejects.toMatchObject({
      code: 'ERR_POD_RESOURCES',
      details: { value: [70_000] },
    });
  });

  it('has every exclusive CPU of the file once, whatever is listed', () => {
    const states = fc
      .array(fc.tuple(fc.integer({ min: 0, max: 4 }), fc.constantFrom('a', 'b')), { maxLength: 16 })
      .map((owners) => {
        // CPU i + 1 is the i-th owner's.
        const entries = new Map<string, Map<string, CpuSet>>();
        for (const [i, [uid, name]] of owners.entries()) {
          const containers = entries.get(`u${uid}`) ?? new Map<string, CpuSet>();
          containers.set(name, (containers.get(name) ?? CpuSet.EMPTY).union(CpuSet.of(i + 1)));
          entries.set(`u${uid}`, containers);
        }
        return { policyName: 'static', defaultCpuSet: CpuSet.of(0), entries };
      });
    fc.assert(
      fc.property(states, fc.infiniteStream(fc.boolean()), (cpu, listed) => {
        const names = [...cpu.entries].filter(() => listed.next().value);
        const list = names.map(([uid, containers]) => ({
          ...{ namespace: 'default', name: `pod-${uid}` },
          containers: Array.from(containers, ([name, cpus]) => ({
            ...{ name, memory: [], devices: {} },
            cpus: listed.next().value ? cpus : cpu.defaultCpuSet,
          })),
        }));
        const sets = (pods: readonly PodHoldings[]) =>
          pods
            .flatMap(({ uid, containers }) => containers.map(({ name, cpus }) => `${uid} ${name} ${cpus}`))
            .sort();
        expect(sets(holdingsOfList(list, cpu))).toEqual(sets(holdingsOfFiles({ cpu })));
      }),
    );
  });

  it('includes the rest of a pod-level booking', () => {
    const cpu = {
      ...{ policyName: 'static', defaultCpuSet: CpuSet.of(0) },
      entries: new Map([['u1', new Map([['main', CpuSet.of(1)]])]]),
      podEntries: new Map([['u1', { cpuSet: CpuSet.of(1, 2, 3) }]]),
    };
    const list = [{ namespace: 'n', name: 'a', containers: [{ ...held('main', ''), cpus: CpuSet.of(1) }] }];
    const containers = [held('main', '1'), held('(pod)', '2-3')];
    expect(plain(holdingsOfFiles({ cpu }))).toEqual([{ namespace: '', name: 'u1', uid: 'u1', containers }]);
    expect(plain(holdingsOfList(list, cpu))).toEqual([{ namespace: 'n', name: 'a', uid: 'u1', containers }]);
  });
});

it('The rest of the memory of a pod as a whole is held, as files list it and beside the list', () => {
  const blocks = (...sizes: bigint[]) =>
    sizes.map((size, i) => ({ numaAffinity: [0], type: i === 0 ? 'memory' : 'hugepages-2Mi', size }));
  const memory = {
    ...{ policyName: 'Static', machineState: new Map() },
    entries: new Map([
      [
        'u1',
        new Map([
          ['main', blocks(3n, 4n)],
          ['side', blocks(2n)],
        ]),
      ],
    ]),
    podEntries: new Map([['u1', { memoryBlocks: blocks(9n, 4n) }]]),
  };
  const rest = { ...held('(pod)', ''), memory: [{ nodes: [0], type: 'memory', bytes: 4 }] };
  const memoryOf = (pods: readonly PodHoldings[]) =>
    pods.flatMap(({ containers }) => containers).flatMap((each) => each.memory);
  expect(memoryOf(holdingsOfFiles({ memory })).reduce((sum, { bytes }) => sum + bytes, 0)).toBe(13);
  expect(plain(holdingsOfFiles({ memory }))[0]!.containers.at(-1)).toEqual(rest);
  const cpu = { policyName: 'static', defaultCpuSet: CpuSet.of(0), entries: new Map() };
  const idle = { name: 'main', cpus: CpuSet.EMPTY, memory: [], devices: {} };
  const list = [{ namespace: 'n', name: 'b', containers: [idle] }];
  expect(plain(holdingsOfList(list, cpu, memory))).toEqual([
    { namespace: '', name: 'u1', uid: 'u1', containers: [rest] },
  ]);
});

it('What a pod has as a whole goes on record and is not granted', async () => {
  const cpu = {
    ...{ policyName: 'static', defaultCpuSet: CpuSet.of(0), entries: new Map() },
    podEntries: new Map([['u1', { cpuSet: CpuSet.parse('4-6') }]]),
  };
  const topology = await discover({ synthetic: 'numa:1(memory=8GB) core:8 pu:1' });
  await using manager = await openManager({ topology });
  await manager.recordKubelet(holdingsOfFiles({ cpu }).map(recordOf));
  expect(String(manager.freeCpus())).toBe('0-3,7');
});

describe('One pod', () => {
  it('is reported by newer kubelets, and refused by older ones', async () => {
    await kubelet.answer({
      Get: ({ pod_name }) => ({ pod_resources: pod(pod_name, container('main', [1])) }),
    });
    expect(plain([(await ask().get('default', 'a'))!])).toEqual([
      { namespace: 'default', name: 'a', containers: [held('main', '1')] },
    ]);
    await expect(ask().list()).rejects.toMatchObject({ details: { value: 'UNIMPLEMENTED' } });
  });
});
