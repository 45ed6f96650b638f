import { formatMemoryManagerState } from 'numalign/kubelet';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { uncaught } from '../../../../test/support/uncaught.js';
import type { PodHoldings } from '../../lib/kubelet/holdings.js';
import { KubeletFollower } from '../../lib/kubelet/kubelet-follower.js';
import { KubeletFolder } from './kubelet-folder.js';

let kubelet: KubeletFolder;
let follower: KubeletFollower;
let records: (readonly PodHoldings[])[];
let messages: string[];

beforeEach(() => {
  kubelet = new KubeletFolder();
  records = [];
  messages = [];
});

afterEach(async () => {
  vi.useRealTimers();
  await follower.close();
  kubelet.remove();
});

async function follow(options: Partial<ConstructorParameters<typeof KubeletFollower>[0]> = {}) {
  const { socket, stateFolder, deviceFolder } = kubelet.options;
  follower = new KubeletFollower({
    ...{ podResourcesSocket: socket, stateFolder, deviceFolder },
    record: async (holdings) => void records.push(holdings),
    log: (_level, message) => messages.push(message),
    ...options,
  });
  await follower.start();
}

const last = () =>
  records.at(-1)?.map(({ uid, containers }) => `${uid}: ${containers.map(({ cpus }) => cpus).join(' ')}`);
const checkpoint = (ids: string[]) =>
  JSON.stringify({
    Data: {
      PodDeviceEntries: [
        { PodUID: 'u1', ContainerName: 'main', ResourceName: 'numalign.io/cpu', DeviceIDs: { 0: ids } },
        { PodUID: 'u1', ContainerName: 'main', ResourceName: 'vendor.com/nic', DeviceIDs: { 0: ids } },
      ],
    },
    Checksum: 0,
  });

/** A file with memory that a pod has as a whole. `more`: further members. */
function memoryState(more = {}): string {
  const podEntries = new Map([
    ['u1', { memoryBlocks: [{ numaAffinity: [0], type: 'memory', size: 4096n }] }],
  ]);
  const state = { policyName: 'Static', machineState: new Map(), entries: new Map(), podEntries };
  return JSON.stringify({ ...JSON.parse(formatMemoryManagerState(state)), ...more });
}

describe('Who follows the kubelet', () => {
  it('records its earlier allocations', async () => {
    kubelet.writeCpus('0', { u1: { main: '1' } });
    await follow();
    expect(last()).toEqual(['u1: 1']);
  });

  it('goes on although its log throws, which is reported', async () => {
    const seen = uncaught();
    let isRecorded = false;
    await follow({
      record: async () => {
        if (!isRecorded) throw new Error('the disk is full');
        isRecorded = false;
      },
      log: () => {
        throw new Error('bug in log');
      },
    });
    await expect.poll(() => seen).toEqual(['bug in log']);
    isRecorded = true;
    kubelet.writeCpus('0,2-3', { u1: { main: '1' } });
    await expect.poll(() => isRecorded).toBe(false);
  });

  it('notices each change of its file', async () => {
    kubelet.writeCpus('0-3', {});
    await follow();
    expect(last()).toEqual([]);
    kubelet.writeCpus('0,2-3', { u1: { main: '1' } });
    await expect.poll(last).toEqual(['u1: 1']);
    kubelet.writeCpus('0-3', {});
    await expect.poll(last).toEqual([]);
  });

  it('asks nothing if other files change', async () => {
    await kubelet.list([]);
    await follow();
    // Once and, for pods that a kubelet lists later, three times in its first seconds.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    for (let i = 0; i < 4; i++) await follower.look();
    expect(kubelet.lists).toBe(5);
    kubelet.write('other', '');
    kubelet.writeCpus('0-3', {});
    await expect.poll(() => kubelet.lists).toBe(6);
    await expect.poll(() => vi.getTimerCount()).toBe(0);
  });

  it('asks a kubelet again that lists its pods some time after its start', async () => {
    let pods: object[] = [];
    await follow();
    await kubelet.answer({
      List: () => ({ pod_resources: pods }),
      GetAllocatableResources: () => ({ cpu_ids: [1] }),
    });
    await expect.poll(() => kubelet.lists).toBeGreaterThan(0);
    pods = [{ namespace: 'default', name: 'a', containers: [{ name: 'main', cpu_ids: [1] }] }];
    await expect.poll(() => records.at(-1)?.[0]?.name).toBe('a');
  });

  it('says of a kubelet that has another policy now that it may not run beside', async () => {
    let flaw: string | undefined;
    await follow({ check: async () => (flaw === undefined ? undefined : Promise.reject(new Error(flaw))) });
    expect(follower.condition.isMet).toBe(true);
    flaw = 'it places containers itself';
    kubelet.writeCpus('0,2-3', { u1: { main: '1' } });
    await expect.poll(() => follower.condition).toMatchObject({ isMet: false, text: flaw });
    expect([messages, last()]).toEqual([[flaw], ['u1: 1']]);
    flaw = undefined;
    kubelet.writeCpus('0-3', {});
    await expect.poll(() => follower.condition.isMet).toBe(true);
  });

  it('asks a new kubelet', async () => {
    kubelet.writeCpus('0', { u1: { main: '1' } });
    await follow();
    expect(records.at(-1)![0]!.namespace).toBe('');
    await kubelet.list([{ namespace: 'default', name: 'a', containers: [{ name: 'main', cpu_ids: [1] }] }]);
    await expect.poll(() => records.at(-1)?.[0]?.namespace).toBe('default');
  });

  it('records devices, except those of its own plugins', async () => {
    await follow({ ownResources: ['numalign.io/cpu'] });
    kubelet.write('kubelet_internal_checkpoint', checkpoint(['x']), kubelet.deviceFolder);
    await expect
      .poll(() => records.at(-1)?.[0]?.containers[0]?.devices)
      .toEqual({ 'vendor.com/nic': [{ id: 'x', nodes: [0] }] });
  });

  it('tries again if the record fails, and says so', async () => {
    let refusals = 2;
    kubelet.writeCpus('0', { u1: { main: '1' } });
    await follow({
      record: async (holdings) => {
        if (refusals-- > 0) throw new Error('the disk is full');
        records.push(holdings);
      },
    });
    expect(messages).toEqual(["the kubelet's assignments are not on record: the disk is full"]);
    await expect.poll(last).toEqual(['u1: 1']);
    expect(messages).toHaveLength(2);
  });

  it('keeps the record if the kubelet’s file is damaged, and continues with the next', async () => {
    await follow();
    const before = records.length;
    kubelet.write('cpu_manager_state', 'nonsense');
    await expect.poll(() => messages.length).toBeGreaterThan(0);
    expect(records.length).toBe(before);
    kubelet.writeCpus('0', { u1: { main: '1' } });
    await expect.poll(last).toEqual(['u1: 1']);
  });

  it.each([
    ['lists pods', (pods: object[]) => kubelet.list(pods)],
    ['does not listen', async () => {}],
  ])(
    'records CPUs beside a memory file of a newer kubelet, which it names, if the kubelet %s',
    async (_, list) => {
      const cpus = { u1: { main: '1' }, u2: { main: '2' } };
      const { u1 } = cpus;
      kubelet.writeCpus('0', { u1 });
      await list([{ namespace: 'default', name: 'a', containers: [{ name: 'main', cpu_ids: [1] }] }]);
      kubelet.write('memory_manager_state', memoryState());
      await follow();
      const memory = () =>
        JSON.stringify(records.at(-1)!.flatMap(({ containers }) => containers.at(-1)!.memory));
      const before = memory();
      expect(before).toContain('"bytes":4096');
      kubelet.write('memory_manager_state', memoryState({ newer: {} }));
      await expect
        .poll(() => messages.join())
        .toMatch(/memory .* may not be on record: memory_manager_state .*newer/);
      kubelet.writeCpus('0', cpus);
      await expect.poll(last).toEqual(['u1: 1 ', 'u2: 2']);
      expect(memory()).toBe(before);
    },
  );

  it('notices nothing once it is closed', async () => {
    await follow();
    await follower.close();
    const before = records.length;
    kubelet.writeCpus('0', { u1: { main: '1' } });
    await follower.look();
    expect(records.length).toBe(before);
  });
});
