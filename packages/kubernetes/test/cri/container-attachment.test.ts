import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { type Manager, type ManagerOptions, openManager } from 'numalign';
import { discover, type MachineJson } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ContainerAttachment, type ContainerAttachmentOptions } from '../../lib/cri/container-attachment.js';
import { canMakeCgroups } from './container-cgroup.js';
import { FakeNode } from './fake-node.js';

async function nodeWith(count: number, options: ManagerOptions = {}) {
  const node = await FakeNode.start(count);
  const stateDir = join(node.folder, 'state');
  const manager: Manager = await openManager({ stateDir, sharedMember: false, ...options });
  onTestFinished(() => manager.close());
  const logged: string[] = [];
  const attachmentOf = (i: number, options: Partial<ContainerAttachmentOptions> = {}) =>
    new ContainerAttachment({
      ...{ manager, runtime: node.runtime, container: `c${i}`, cpu: 1 },
      log: (level, message) => logged.push(`${level}: ${message}`),
      ...options,
    });
  return { node, manager, logged, attachmentOf, before: node.cpus() };
}

describe.runIf(canMakeCgroups && availableParallelism() > 1)('An attachment that cannot be made', () => {
  it('leaves nothing changed if the runtime does not set the requested cpuset', async () => {
    const { node, manager, attachmentOf, before, logged } = await nodeWith(3);
    const target = node.container(1);
    node.onUpdate = (container) => (container === target ? 'ignore' : undefined);
    await expect(attachmentOf(1).start()).rejects.toMatchObject({ code: 'ERR_CPUSET_MISMATCH' });
    expect(node.cpus()).toEqual(before);
    expect(manager.grants()).toEqual([]);
    expect(logged).toEqual([]);
  });

  it('leaves nothing changed if the runtime sets another cpuset', async () => {
    const { node, manager, attachmentOf, before } = await nodeWith(2);
    const all = before[0]!;
    let isFirst = true;
    node.onUpdate = (container, cpus) => {
      if (container !== node.container(0) || !isFirst) return;
      isFirst = false;
      const other = manager.topology.cpus.toArray().find((cpu) => `${cpu}` !== cpus)!;
      container.write('cpuset.cpus', `${other}`);
      return 'ignore';
    };
    await expect(attachmentOf(0).start()).rejects.toMatchObject({ code: 'ERR_CPUSET_MISMATCH' });
    expect(node.cpus()).toEqual([all, all]);
    expect(manager.grants()).toEqual([]);
  });

  it('leaves nothing changed if the runtime refuses in the middle', async () => {
    const { node, manager, attachmentOf, before } = await nodeWith(3);
    let count = 0;
    node.onUpdate = () => {
      if (++count === 2) throw { code: status.INTERNAL, details: 'out of order' };
    };
    await expect(attachmentOf(0).start()).rejects.toMatchObject({ code: 'ERR_RUNTIME' });
    expect(node.cpus()).toEqual(before);
    expect(manager.grants()).toEqual([]);
  });

  it('reports what it could not undo, and undoes the rest', async () => {
    const { node, manager, attachmentOf, logged } = await nodeWith(2);
    let count = 0;
    node.onUpdate = () => {
      if (++count > 1) throw { code: status.INTERNAL, details: 'out of order' };
    };
    await expect(attachmentOf(0).start()).rejects.toMatchObject({ code: 'ERR_RUNTIME' });
    expect(manager.grants()).toEqual([]);
    expect(logged).toEqual([
      'error: other containers are not as before: UpdateContainerResources: out of order',
    ]);
  });

  it.each([1, 2])('leaves nothing changed if it is given up at update %d', async (at) => {
    const { node, manager, attachmentOf, before } = await nodeWith(2);
    const controller = new AbortController();
    let count = 0;
    node.onUpdate = () => {
      if (++count === at) controller.abort('enough');
    };
    await expect(attachmentOf(0, { signal: controller.signal }).start()).rejects.toBe('enough');
    expect(node.cpus()).toEqual(before);
    expect(manager.grants()).toEqual([]);
  });

  it.each([1.5, 0, -1, Number.NaN])('takes no %d CPUs', async (cpu) => {
    const { attachmentOf, manager } = await nodeWith(1);
    const error = { code: 'ERR_INVALID_OPTION', details: { value: cpu } };
    await expect(attachmentOf(0, { cpu }).start()).rejects.toMatchObject(error);
    expect(manager.grants()).toEqual([]);
  });

  it('is refused under the CPU policy none', async () => {
    const { attachmentOf, manager } = await nodeWith(1, { cpuManagerPolicy: 'none' });
    const error = { code: 'ERR_NO_EXCLUSIVE_CPUS', details: { value: 'none', valid: 'static' } };
    await expect(attachmentOf(0).start()).rejects.toMatchObject(error);
    expect(manager.grants()).toEqual([]);
  });

  it('leaves the container to another one that was made at the same time', async () => {
    const { attachmentOf, manager, node } = await nodeWith(1);
    const starts = await Promise.allSettled([attachmentOf(0).start(), attachmentOf(0).start()]);
    expect(starts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(starts.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'ERR_CONTAINER_ATTACHED', details: { value: node.container(0).id } },
    });
    expect(node.cpus()).toEqual([`${manager.grants()[0]!.cpus}`]);
  });

  it('leaves nothing changed if the container ends meanwhile', async () => {
    const { node, manager, attachmentOf, before } = await nodeWith(2);
    const target = node.container(0);
    node.onUpdate = async (container) => {
      if (container !== target) return;
      await target.end();
      throw { code: status.UNKNOWN, details: 'container not running' };
    };
    await expect(attachmentOf(0).start()).rejects.toMatchObject({ code: 'ERR_RUNTIME' });
    expect((await node.find(1)).cpuset.effectiveCpus.toString()).toBe(before[1]);
    expect(manager.grants().filter(({ alive }) => alive)).toEqual([]);
  });
});

describe.runIf(canMakeCgroups && availableParallelism() > 1)('An attachment', () => {
  it('makes the others leave before its container comes', async () => {
    const { node, attachmentOf } = await nodeWith(3);
    const order: string[] = [];
    node.onUpdate = ({ id }) => {
      order.push(id);
    };
    await attachmentOf(1).start();
    expect(order.at(-1)).toBe(node.container(1).id);
    expect(order).toHaveLength(3);
  });

  it('has CPUs that the process which makes it may not use', async () => {
    const machine = await discover();
    const reserved = `${machine.cpus.first}`;
    const topology = await discover({ json: { ...machine.toJSON(), allowed: reserved } });
    const { node, attachmentOf, manager } = await nodeWith(1, { topology, reservedSystemCPUs: reserved });
    await attachmentOf(0).start();
    expect(node.cpus()).toEqual([`${manager.grants()[0]!.cpus}`]);
    expect(node.cpus()).not.toEqual([reserved]);
  });

  it('leaves the other thread of a core idle if siblings are held', async () => {
    const [first, second] = (await discover()).cpus;
    // Siblings that this machine need not have.
    const cpus = [first!, second!].flatMap((cpu) => [cpu, cpu + 512].map((each) => [each, cpu, 0, 0]));
    const nodes = [{ id: 0, cpuLess: false, distances: null, memory: 2 ** 30, hugepages: [] }];
    const json = { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes } as unknown as MachineJson;
    const { node, attachmentOf, manager } = await nodeWith(1, { topology: await discover({ json }) });
    const options = { owner: 'persistent', enforcement: 'members', smt: 'hold-sibling' } as const;
    const { uid: grant } = await manager.acquire({ cpu: 1, ...options });
    const attachment = attachmentOf(0, { grant, cpu: undefined });
    await attachment.start();
    expect(await attachment.reconcile()).toBe(true);
    expect(manager.grants()[0]!.cpus.size).toBe(2);
    expect(node.cpus()).toEqual([`${first}`]);
    expect(node.updates).toBe(1);
  });

  it('writes its CPUs again only if they are different', async () => {
    const { node, manager, attachmentOf } = await nodeWith(1);
    const attachment = attachmentOf(0);
    await attachment.start();
    const updates = node.updates;
    expect(await attachment.reconcile()).toBe(true);
    expect(node.updates).toBe(updates);
    node.container(0).write('cpuset.cpus', `${manager.topology.cpus}`);
    expect(await attachment.reconcile()).toBe(true);
    expect(node.cpus()).toEqual([`${manager.grants()[0]!.cpus}`]);
  });

  it('ends with its container, even before a manager has noticed', async () => {
    const { node, manager, attachmentOf, before } = await nodeWith(2);
    const attachment = attachmentOf(0);
    await attachment.start();
    await node.container(0).end();
    expect(await attachment.reconcile()).toBe(false);
    expect((await node.find(1)).cpuset.effectiveCpus.toString()).toBe(before[1]);
    expect(manager.grants()).toEqual([]);
  });

  it('reports nothing before it is made', async () => {
    const { attachmentOf } = await nodeWith(1);
    expect(() => attachmentOf(0).attached).toThrow(TypeError);
  });
});
