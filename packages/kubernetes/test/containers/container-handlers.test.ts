import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Manager, NumalignError } from 'numalign';
import { describe, expect, it, vi } from 'vitest';
import { ContainerState } from '../../lib/nri/messages.js';
import { allocationName } from '../../lib/placement/allocation.js';
import { type ContainerFields, containerOf, podOf } from '../support/nri-objects.js';
import { cpusByContainer, simulatedNode } from '../support/simulated-node.js';

const GIB = 2 ** 30;
const exclusive = (id: string, cpus = 2, more: ContainerFields = {}) =>
  containerOf({ id, cpus, memory: GIB, ...more });
const shared = (id: string, more: ContainerFields = {}) => containerOf({ id, ...more });
const POD = podOf();

/** As the device plugin does. */
const book = (manager: Manager, cpus: string) =>
  manager.adopt({
    uid: 'g1',
    name: allocationName({ resource: 'numalign.io/cpu', uids: ['booked'] }),
    containers: [{ name: 'main', cpus }],
  });

describe('A container that is created', () => {
  it('is placed on its own CPUs, and on the NUMA node of its memory', async () => {
    const { handlers, manager } = await simulatedNode();
    const { adjust, updates } = await handlers.createContainer(POD, exclusive('a'));
    expect(adjust.linux?.resources?.cpu).toEqual({ cpus: '0-1', mems: '0' });
    expect(updates).toEqual([]);
    expect(manager.grants()).toMatchObject([{ uid: 'a', name: 'numalign:default/web/main' }]);
  });

  it('has its CPUs and its grant in its environment', async () => {
    const { handlers } = await simulatedNode();
    const { adjust } = await handlers.createContainer(POD, exclusive('a'));
    expect(adjust.env).toEqual([
      { key: 'NUMALIGN_CPUS', value: '0-1' },
      { key: 'NUMALIGN_GRANT', value: 'a' },
    ]);
  });

  it('runs in the shared pool without exclusive CPUs, and without variables of numalign', async () => {
    const { handlers, manager } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const { adjust } = await handlers.createContainer(POD, shared('b'));
    expect(adjust).toMatchObject({ env: [], linux: { resources: { cpu: { cpus: '2-7' } } } });
    expect(manager.grants()).toHaveLength(1);
  });

  it('takes its CPUs from shared containers in the same answer', async () => {
    const { handlers } = await simulatedNode();
    await handlers.createContainer(POD, shared('a'));
    await handlers.createContainer(POD, shared('b', { cpuset: '0-2' }));
    await handlers.createContainer(POD, shared('c', { cpuset: '6-7' }));
    const { updates } = await handlers.createContainer(POD, exclusive('d'));
    expect(cpusByContainer(updates)).toEqual({ a: '2-7', b: '2' });
  });

  it('is refused with the explanation, and nothing changes', async () => {
    const { handlers, manager } = await simulatedNode({ policy: 'single-numa-node' });
    await handlers.createContainer(POD, shared('a'));
    const creation = handlers.createContainer(POD, exclusive('b', 5));
    await expect(creation).rejects.toThrow(/cpu: 5 requested; free by NUMA node: 0: 4 of 4, 1: 4 of 4/);
    expect(manager.grants()).toEqual([]);
    expect(handlers.containers.map(({ id }) => id)).toEqual(['a']);
    expect((await handlers.createContainer(POD, exclusive('c'))).updates).toHaveLength(1);
  });

  it('keeps its place if the runtime asks again', async () => {
    const { handlers, manager } = await simulatedNode();
    const answers = [];
    for (const _ of [1, 2]) answers.push(await handlers.createContainer(POD, exclusive('a')));
    expect(answers[0]?.adjust).toEqual(answers[1]?.adjust);
    expect(manager.grants()).toHaveLength(1);
  });

  it('gets the device plugin’s booking for it, from this grant alone', async () => {
    const { handlers, manager } = await simulatedNode();
    const name = allocationName({ resource: 'numalign.io/cpu', uids: ['earlier', 'a1'] });
    await manager.adopt({ uid: 'a1', name, containers: [{ name: 'main', cpus: '6-7' }] });
    const grants = vi.spyOn(manager, 'grants');
    const env = ['NUMALIGN_ALLOCATION=a1', 'NUMALIGN_CPUS=6'];
    const { adjust } = await handlers.createContainer(POD, shared('a', { env }));
    expect(adjust.linux?.resources?.cpu?.cpus).toBe('6');
    expect(grants).not.toHaveBeenCalled();
  });

  it('gets no CPUs of a grant that is no allocation, whatever its environment says', async () => {
    const { handlers, manager } = await simulatedNode();
    await manager.adopt({ uid: 'a1', name: 'other', containers: [{ name: 'main', cpus: '6-7' }] });
    const env = ['NUMALIGN_ALLOCATION=a1', 'NUMALIGN_CPUS=6'];
    const creation = handlers.createContainer(POD, shared('a', { env }));
    await expect(creation).rejects.toMatchObject({ code: 'ERR_UNKNOWN_ALLOCATION' });
  });

  it('gets the device plugin’s booking for it', async () => {
    const { handlers, manager } = await simulatedNode();
    await book(manager, '6-7');
    const env = ['NUMALIGN_ALLOCATION=booked', 'NUMALIGN_CPUS=6-7'];
    const { adjust } = await handlers.createContainer(POD, shared('a', { env }));
    expect(adjust.linux?.resources?.cpu?.cpus).toBe('6-7');
    expect(manager.grants()).toHaveLength(1);
  });

  it('is refused if the device plugin’s booking is not on record', async () => {
    const { handlers } = await simulatedNode();
    const creation = handlers.createContainer(
      POD,
      shared('a', { env: ['NUMALIGN_ALLOCATION=gone', 'NUMALIGN_CPUS=6'] }),
    );
    await expect(creation).rejects.toMatchObject({
      code: 'ERR_UNKNOWN_ALLOCATION',
      details: { value: 'gone' },
    });
  });

  it('gets the device plugin’s booking if the plugin puts it on record again', async () => {
    const asked: unknown[] = [];
    const { handlers, manager } = await simulatedNode({}, undefined, async ({ uid, cpus }, container) => {
      asked.push({ uid, cpus: `${cpus}` }, container);
      await book(manager, `${cpus}`);
      return true;
    });
    const env = ['NUMALIGN_ALLOCATION=booked', 'NUMALIGN_CPUS=6-7'];
    const { adjust } = await handlers.createContainer(POD, shared('a', { env }));
    expect(adjust.linux?.resources?.cpu?.cpus).toBe('6-7');
    expect(asked).toEqual([
      { uid: 'booked', cpus: '6-7' },
      { podUid: POD.uid, name: 'main' },
    ]);
  });

  it('gets the devices of its annotations, by their CDI names', async () => {
    const device = (id: string, node: number) => ({ id, numaNodes: [node] });
    const devices = { 'example.com/nic': [device('eth0', 0), device('eth1', 1)] };
    const { handlers } = await simulatedNode({ devices });
    const annotations = { 'numalign.io/resources': 'example.com/nic=1', 'numalign.io/cdi': 'true' };
    const { adjust } = await handlers.createContainer(POD, exclusive('a', 2, { annotations }));
    expect(adjust.env).toContainEqual({ key: 'NUMALIGN_DEVICES', value: 'example.com/nic=eth0' });
    expect(adjust.CDI_devices).toEqual([{ name: 'example.com/nic=eth0' }]);
    expect(adjust.annotations).toMatchObject({ 'cdi.k8s.io/numalign': 'example.com/nic=eth0' });
  });
});

describe('A container that starts and was created without an answer', () => {
  it('is placed on its CPUs and memory nodes by its cgroup', async () => {
    const { handlers, makeCgroup, cpusOf, cgroups } = await simulatedNode();
    makeCgroup('/k/a', '0-7');
    await handlers.startContainer(POD, exclusive('a'));
    expect(cpusOf('/k/a')).toBe('0-1');
    expect(readFileSync(join(cgroups, 'k/a/cpuset.mems'), 'utf8')).toBe('0');
  });

  it('leaves the CPUs of others if it shares', async () => {
    const { handlers, makeCgroup, cpusOf, cgroups } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    makeCgroup('/k/b', '0-7');
    await handlers.startContainer(POD, shared('b'));
    expect(cpusOf('/k/b')).toBe('2-7');
    expect(existsSync(join(cgroups, 'k/b/cpuset.mems'))).toBe(false);
  });
});

describe('A container that ends', () => {
  it('gives its CPUs back, and shared containers widen in the same answer', async () => {
    const { handlers, manager } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    await handlers.createContainer(POD, shared('b'));
    const updates = await handlers.stopContainer(POD, exclusive('a'));
    expect(cpusByContainer(updates)).toEqual({ b: '0-7' });
    expect(manager.grants()).toEqual([]);
  });

  it('is given back with its pod if it never started', async () => {
    const { handlers, manager } = await simulatedNode();
    handlers.runPodSandbox(POD);
    await handlers.createContainer(POD, exclusive('a'));
    await handlers.removePodSandbox(POD);
    expect(manager.grants()).toEqual([]);
    expect(handlers.containers).toEqual([]);
  });

  it('leaves the device plugin’s booking to the pod', async () => {
    const { handlers, manager } = await simulatedNode();
    await book(manager, '6-7');
    const env = ['NUMALIGN_ALLOCATION=booked', 'NUMALIGN_CPUS=6-7'];
    handlers.runPodSandbox(POD);
    await handlers.createContainer(POD, shared('a', { env }));
    await handlers.stopContainer(POD, shared('a'));
    const { adjust } = await handlers.createContainer(POD, shared('b', { env }));
    expect(adjust.linux?.resources?.cpu?.cpus).toBe('6-7');
    await handlers.removeContainer(POD, shared('b'));
    expect(manager.grants()).toHaveLength(1);
    await handlers.removePodSandbox(POD);
    expect(manager.grants()).toEqual([]);
  });

  it('leaves the device plugin’s booking to its pod, which has got another sandbox', async () => {
    const { handlers, manager } = await simulatedNode();
    await book(manager, '6-7');
    const env = ['NUMALIGN_ALLOCATION=booked', 'NUMALIGN_CPUS=6-7'];
    const next = { ...POD, id: 'next' };
    for (const [pod, id] of [
      [POD, 'a'],
      [next, 'b'],
    ] as const) {
      handlers.runPodSandbox(pod);
      await handlers.createContainer(pod, shared(id, { env, pod_sandbox_id: pod.id }));
    }
    await handlers.removePodSandbox(POD);
    expect(manager.grants()).toHaveLength(1);
    await handlers.removePodSandbox(next);
    expect(manager.grants()).toEqual([]);
  });
});

describe('A container that another client updates', () => {
  // containerd passes on the updates of the kubelet's CPU manager like this.
  const cpusetAlone = (cpus: string) =>
    ({
      cpu: { shares: { value: 0 }, quota: { value: 0 }, period: { value: 0 }, cpus, mems: '' },
      memory: { limit: { value: 0 }, reservation: null, swap: null },
      hugepage_limits: [],
      unified: {},
    }) as const;

  it('keeps its exclusive CPUs', async () => {
    const { handlers } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const updates = await handlers.updateContainer(POD, exclusive('a'), cpusetAlone('0-7'));
    expect(updates).toEqual([
      { container_id: 'a', linux: { resources: { cpu: { cpus: '0-1', mems: '0' } } } },
    ]);
  });

  it('stays off the CPUs of others', async () => {
    const { handlers } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    await handlers.createContainer(POD, shared('b'));
    const updates = await handlers.updateContainer(POD, shared('b'), cpusetAlone('0-3'));
    expect(cpusByContainer(updates)).toEqual({ b: '2-3' });
    expect(cpusByContainer(await handlers.stopContainer(POD, exclusive('a')))).toEqual({ b: '0-3' });
  });

  it('gets more exclusive CPUs if its quota grows, and others leave them', async () => {
    const { handlers } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    await handlers.createContainer(POD, shared('b'));
    const { cpu } = exclusive('a', 3).linux!.resources!;
    const updates = await handlers.updateContainer(POD, exclusive('a'), {
      ...cpusetAlone(''),
      cpu: { ...cpu!, cpus: '' },
    });
    expect(cpusByContainer(updates)).toEqual({ a: '0-2', b: '3-7' });
  });

  it('has its new limit of memory booked, or is refused', async () => {
    const { handlers, manager } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const limit = (value: number) => ({
      ...cpusetAlone(''),
      memory: { limit: { value }, reservation: null, swap: null },
    });
    await handlers.updateContainer(POD, exclusive('a'), limit(2 * GIB));
    expect(manager.grantInfo('a').memory).toEqual([{ nodes: [0], type: 'memory', bytes: 2 * GIB }]);
    const update = handlers.updateContainer(POD, exclusive('a'), limit(32 * GIB));
    await expect(update).rejects.toThrow(/memory: 32 GiB requested/);
    expect(manager.grantInfo('a').memory).toEqual([{ nodes: [0], type: 'memory', bytes: 2 * GIB }]);
  });

  it('is refused a part of a CPU in the place of whole ones', async () => {
    const { handlers } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const { cpu } = exclusive('a', 1.5).linux!.resources!;
    const update = handlers.updateContainer(POD, exclusive('a'), {
      ...cpusetAlone(''),
      cpu: { ...cpu!, cpus: '' },
    });
    await expect(update).rejects.toMatchObject({ code: 'ERR_NOT_RESIZABLE' });
  });
});

describe('A plugin that comes to containers that run', () => {
  const running = (container: ReturnType<typeof containerOf>, cpus: string, mems = '') => ({
    ...container,
    state: ContainerState.RUNNING,
    linux: {
      ...container.linux!,
      resources: {
        ...container.linux!.resources!,
        cpu: { ...container.linux!.resources!.cpu!, cpus, mems },
      },
    },
  });

  it('leaves those on record in place', async () => {
    const { handlers, restart, manager } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const updates = await restart().synchronize([POD], [running(exclusive('a'), '0-1')]);
    expect(updates).toEqual([]);
    expect(manager.grants()).toHaveLength(1);
  });

  it('puts one on record back on its CPUs if it started without a plugin', async () => {
    const { handlers, restart } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const updates = await restart().synchronize([POD], [running(exclusive('a'), '')]);
    expect(cpusByContainer(updates)).toEqual({ a: '0-1' });
  });

  it.each([
    ['', '0-7'],
    ['0-3', '0-3'],
  ])('gives back what has ended meanwhile, also to one whose creator chose CPUs %j', async (cpuset, cpus) => {
    const { handlers, restart, manager } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    const { adjust } = await handlers.createContainer(POD, shared('b', { cpuset }));
    const { cpus: narrow } = adjust.linux!.resources!.cpu!;
    const b = running(shared('b', { annotations: adjust.annotations! }), narrow!);
    const updates = await restart().synchronize([POD], [b]);
    expect(manager.grants()).toEqual([]);
    expect(cpusByContainer(updates)).toEqual({ b: cpus });
  });

  it('gives back the grant of one whose last process has ended, even if the runtime says that it runs', async () => {
    const { handlers, restart, manager, makeCgroup, cgroups } = await simulatedNode();
    await handlers.createContainer(POD, exclusive('a'));
    makeCgroup('/k/a', '0-1');
    const a = running(exclusive('a'), '0-1');
    await restart().synchronize([POD], [a]);
    expect(manager.grants()).toHaveLength(1);
    writeFileSync(join(cgroups, 'k/a/cgroup.procs'), '');
    const again = restart();
    await again.synchronize([POD], [a]);
    await expect.poll(() => manager.grants()).toEqual([]);
    await expect.poll(() => again.containers).toEqual([]);
  });

  it('gives back only grants that it has made', async () => {
    const { handlers, manager } = await simulatedNode();
    await manager.acquire({ cpu: 1, name: 'other:default/web/main', owner: 'persistent' });
    await handlers.synchronize([], []);
    expect(manager.grants()).toHaveLength(1);
  });

  it('records one with its own CPUs by its cpuset in place', async () => {
    const { handlers, manager } = await simulatedNode();
    const containers = [running(exclusive('a'), '5-6'), running(shared('b'), '')];
    expect(cpusByContainer(await handlers.synchronize([POD], containers))).toEqual({ b: '0-4,7' });
    expect(manager.grants().map(({ uid, cpus }) => [uid, String(cpus)])).toEqual([['a', '5-6']]);
  });

  it.each(['', '5-6'])('tries again if the state is locked, with containers on CPUs %j', async (cpus) => {
    const { handlers, manager, lines } = await simulatedNode();
    const locked = new NumalignError('ERR_LOCK_TIMEOUT', 'process 1 holds the lock', {
      holder: 'node',
      pid: 1,
      stopped: false,
      lockTimeoutMs: 1,
    });
    const waits = (['admit', 'adopt'] as const).map((name) =>
      vi.spyOn(manager, name).mockRejectedValueOnce(locked),
    );
    const containers = [running(exclusive('a'), cpus)];
    await expect(handlers.synchronize([POD], containers)).rejects.toBe(locked);
    for (const wait of waits) wait.mockRestore();
    await handlers.synchronize([POD], containers);
    expect(manager.grants()).toMatchObject([{ uid: 'a' }]);
    expect(lines.join()).not.toMatch(/warn|error/);
  });

  it('books the memory of one in place on the NUMA nodes of its cpuset', async () => {
    const { handlers, manager, lines } = await simulatedNode();
    const a = exclusive('a');
    expect(await handlers.synchronize([POD], [running(a, '5-6', '1')])).toEqual([]);
    expect(manager.grants()[0]?.memory).toEqual([{ nodes: [1], type: 'memory', bytes: GIB }]);
    expect(lines.join()).not.toMatch(/warn|error/);
  });

  it('books no memory of one in place under the memory policy None', async () => {
    const { handlers, manager, lines } = await simulatedNode({ memoryManagerPolicy: 'None' });
    await handlers.synchronize([POD], [running(exclusive('a'), '5-6', '1')]);
    expect(manager.grants()).toMatchObject([{ uid: 'a', memory: [] }]);
    expect(lines.join()).not.toMatch(/warn|error/);
  });

  it('leaves one in place whose memory others have booked', async () => {
    const { handlers, manager, lines } = await simulatedNode();
    await manager.admit({
      ...{ qosClass: 'Guaranteed', containers: [{ name: 'm', limits: { cpu: '100m', memory: '14Gi' } }] },
    });
    await handlers.synchronize([POD], [running(exclusive('a'), '5-6', '1')]);
    expect(manager.grants()).toContainEqual(expect.objectContaining({ uid: 'a', memory: [] }));
    expect(lines.join('\n')).toMatch(/warn: the memory of numalign:.* is not booked on NUMA nodes 1/);
  });

  it('moves one whose CPUs another grant holds', async () => {
    const { handlers, manager, lines } = await simulatedNode();
    await manager.acquire({ cpu: 2 });
    const updates = await handlers.synchronize([POD], [running(exclusive('a'), '0-1')]);
    expect(cpusByContainer(updates)).toEqual({ a: '2-3' });
    expect(lines.join('\n')).toMatch(/warn: main cannot stay on CPUs 0-1/);
  });

  it.each([
    ['an annotation', { annotations: { 'numalign.io/cpu': 'two' } }],
    ['an environment', { env: ['NUMALIGN_ALLOCATION=a', 'NUMALIGN_ALLOCATION=b'] }],
  ])('puts one with unreadable %s into the shared pool, off the CPUs of others', async (_, fields) => {
    const { handlers, lines } = await simulatedNode();
    const containers = [running(exclusive('a'), ''), running(shared('b', fields), '')];
    expect(cpusByContainer(await handlers.synchronize([POD], containers))).toEqual({ a: '0-1', b: '2-7' });
    expect(lines.join('\n')).toMatch(/error: .*stays in the shared pool: .*(two|more than one)/);
  });

  it('puts one whose pod is unknown into the shared pool, off the CPUs of others', async () => {
    const { handlers } = await simulatedNode();
    const containers = [running(exclusive('a'), ''), running(shared('b', { pod_sandbox_id: 'p2' }), '')];
    expect(cpusByContainer(await handlers.synchronize([POD], containers))).toEqual({ a: '0-1', b: '2-7' });
  });

  it('reports one that cannot have its place, and lets it run in the shared pool', async () => {
    const { handlers, lines } = await simulatedNode();
    const containers = [running(exclusive('a', 6), '2-7'), running(exclusive('b', 4), '')];
    const updates = await handlers.synchronize([POD], containers);
    expect(cpusByContainer(updates)).toEqual({ b: '0-1' });
    expect(lines.join('\n')).toMatch(
      /error: numalign:default\/web\/main stays in the shared pool: 4 exclusive CPUs requested: /,
    );
  });
});

describe('CPUs that a process outside of containers takes', () => {
  it('are left by shared containers even if the runtime gets an error meanwhile', async () => {
    const { handlers, manager, makeCgroup, cpusOf } = await simulatedNode({}, undefined, async () => {
      const changed = once(manager, 'change');
      await manager.acquire({ cpu: 2 });
      await changed;
      return false;
    });
    makeCgroup('/k/a', '0-7');
    await handlers.createContainer(POD, shared('a'));
    const env = ['NUMALIGN_ALLOCATION=gone', 'NUMALIGN_CPUS=6'];
    const creation = handlers.createContainer(POD, shared('b', { env }));
    await expect(creation).rejects.toMatchObject({ code: 'ERR_UNKNOWN_ALLOCATION' });
    expect(cpusOf('/k/a')).toBe('2-7');
  });

  it('are left by shared containers at once, through their cgroups', async () => {
    const { handlers, manager, makeCgroup, cpusOf } = await simulatedNode();
    makeCgroup('/k/a', '0-7');
    await handlers.createContainer(POD, shared('a'));
    const grant = await manager.acquire({ cpu: 2 });
    await expect.poll(() => cpusOf('/k/a')).toBe('2-7');
    await grant.release();
    await expect.poll(() => cpusOf('/k/a')).toBe('0-7');
  });

  it('are left by a container that was sent elsewhere meanwhile', async () => {
    const { handlers, manager, makeCgroup, cpusOf } = await simulatedNode();
    makeCgroup('/k/a', '0-7');
    await handlers.createContainer(POD, shared('a'));
    await handlers.createContainer(POD, exclusive('b'));
    await manager.acquire({ cpu: 2 });
    await expect.poll(() => cpusOf('/k/a')).toBe('4-7');
    // The runtime carries out the earlier answer first.
    makeCgroup('/k/a', '2-7');
    handlers.postCreateContainer();
    expect(cpusOf('/k/a')).toBe('4-7');
  });
});
