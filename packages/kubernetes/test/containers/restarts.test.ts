// Containers of a kubelet's pods, which start again as other containers.
import { describe, expect, it, vi } from 'vitest';
import { type ContainerFields, containerOf, podOf } from '../support/nri-objects.js';
import { type SimulatedNode, simulatedNode } from '../support/simulated-node.js';

const UID = '6a1c2b34-0000-4000-8000-123456789abc';
const PODS = `/kubepods/pod${UID}`;
const POD = podOf({ uid: UID });
const OTHER = podOf({ id: 'p2', name: 'other', uid: 'u2' });

let created = 0;
/** A container that is new, of this name, with as many CPUs. */
const containerNamed = (name: string, cpus: number, more: ContainerFields = {}) => {
  const id = `${name}-${++created}`;
  const fields = containerOf({ id, name, cpus, memory: 2 ** 20, ...more });
  return { ...fields, linux: { ...fields.linux!, cgroups_path: `${PODS}/${id}` } };
};

async function create({ handlers }: SimulatedNode, container: ReturnType<typeof containerOf>, pod = POD) {
  const { adjust } = await handlers.createContainer(pod, container);
  return adjust.linux!.resources!.cpu!.cpus;
}

const held = ({ manager }: SimulatedNode) =>
  Object.fromEntries(manager.grants().map(({ uid, cpus }) => [uid, `${cpus}`]));

describe('A container of a pod that starts again', () => {
  it('has the CPUs that it had, which no other got meanwhile', async () => {
    const node = await simulatedNode();
    const first = containerNamed('app', 4);
    const cpus = await create(node, first);
    await node.handlers.stopContainer(POD, first);
    expect(held(node)).toEqual({ [`${UID}.app`]: cpus });
    await expect(create(node, containerOf({ id: 'x', cpus: 5, memory: 1 }), OTHER)).rejects.toThrow(
      /5 exclusive CPUs requested/,
    );
    expect(await create(node, containerNamed('app', 4))).toBe(cpus);
    await node.handlers.removeContainer(POD, first);
    expect(held(node)).toEqual({ [`${UID}.app`]: cpus });
  });

  it('has them after a restart of the plugin too, in which it does not run', async () => {
    const node = await simulatedNode();
    const first = containerNamed('app', 3);
    const cpus = await create(node, first);
    const handlers = node.restart();
    await handlers.synchronize([POD], []);
    expect(await create({ ...node, handlers }, containerNamed('app', 3))).toBe(cpus);
    await handlers.stopPodSandbox(POD);
    expect(held(node)).toEqual({});
  });

  it('is found by a plugin that starts beside it', async () => {
    const node = await simulatedNode();
    await create(node, containerNamed('app', 2));
    const again = containerNamed('app', 2);
    const handlers = node.restart();
    const updates = await handlers.synchronize([POD], [again]);
    expect(updates).toMatchObject([
      { container_id: again.id, linux: { resources: { cpu: { cpus: '0-1' } } } },
    ]);
    expect(held(node)).toEqual({ [`${UID}.app`]: '0-1' });
  });

  it('has what it asks for now if its amounts have changed', async () => {
    const node = await simulatedNode();
    const first = containerNamed('app', 4);
    await create(node, first);
    await node.handlers.stopContainer(POD, first);
    await create(node, containerNamed('app', 2));
    expect(held(node)).toEqual({ [`${UID}.app`]: '0-1' });
  });

  it('leaves its CPUs to others once the sandbox has ended, or is gone', async () => {
    const node = await simulatedNode();
    await create(node, containerNamed('app', 4));
    await node.handlers.stopPodSandbox(POD);
    expect(held(node)).toEqual({});
    await create(node, containerNamed('app', 4));
    await node.restart().synchronize([OTHER], []);
    expect(held(node)).toEqual({});
  });

  it('does not lose them to the end of an earlier sandbox of its pod', async () => {
    const node = await simulatedNode();
    await create(node, containerNamed('app', 4));
    const next = podOf({ id: 'p3', uid: UID });
    const again = { ...containerNamed('app', 4), pod_sandbox_id: 'p3' };
    await create(node, again, next);
    await node.handlers.stopPodSandbox(POD);
    await node.handlers.removePodSandbox(POD);
    expect(held(node)).toEqual({ [`${UID}.app`]: '0-3' });
  });

  it('loses them at the end of the later sandbox, though the earlier one is still to be removed', async () => {
    const node = await simulatedNode();
    node.handlers.runPodSandbox(POD);
    await create(node, containerNamed('app', 4));
    const next = podOf({ id: 'p3', uid: UID });
    node.handlers.runPodSandbox(next);
    await create(node, { ...containerNamed('app', 4), pod_sandbox_id: 'p3' }, next);
    await node.handlers.stopPodSandbox(POD);
    expect(held(node)).toEqual({ [`${UID}.app`]: '0-3' });
    await node.handlers.stopPodSandbox(next);
    expect(held(node)).toEqual({});
  });

  it('loses them so too if the earlier one had ended before the plugin came', async () => {
    const node = await simulatedNode();
    const next = podOf({ id: 'p3', uid: UID, pid: 7 });
    const app = { ...containerNamed('app', 4), pod_sandbox_id: 'p3' };
    await create(node, app, next);
    const handlers = node.restart();
    await handlers.synchronize([podOf({ uid: UID, pid: 0 }), next], [app]);
    await handlers.stopPodSandbox(next);
    expect(held(node)).toEqual({});
  });

  it('loses them so too if the runtime does not say which sandboxes have ended', async () => {
    const node = await simulatedNode();
    const [earlier, next] = [podOf({ uid: UID, pid: 0 }), podOf({ id: 'p3', uid: UID, pid: 0 })];
    const app = { ...containerNamed('app', 4), pod_sandbox_id: 'p3' };
    await create(node, app, next);
    const handlers = node.restart();
    await handlers.synchronize([earlier, next], [app]);
    await handlers.stopPodSandbox(next);
    expect(held(node)).toEqual({});
  });

  it('loses them so too if the earlier one ended unseen before the later one began', async () => {
    const node = await simulatedNode();
    const [earlier, next] = [podOf({ uid: UID, pid: 0 }), podOf({ id: 'p3', uid: UID, pid: 0 })];
    await create(node, containerNamed('app', 4), earlier);
    const handlers = node.restart();
    await handlers.synchronize([earlier], []);
    handlers.runPodSandbox(next);
    await handlers.stopPodSandbox(next);
    expect(held(node)).toEqual({});
  });

  it('is looked for on record only if the pod has had another sandbox', async () => {
    const node = await simulatedNode();
    const grants = vi.spyOn(node.manager, 'grants');
    node.handlers.runPodSandbox(POD);
    expect(grants).not.toHaveBeenCalled();
    node.handlers.runPodSandbox(podOf({ id: 'p3', uid: UID }));
    expect(grants).toHaveBeenCalled();
  });
});

describe('What init containers leave', () => {
  it('is free for the next containers of their pod', async () => {
    const node = await simulatedNode();
    for (const name of ['init-1', 'init-2', 'app']) {
      const container = containerNamed(name, 6);
      await create(node, container);
      expect(Object.keys(held(node))).toEqual([`${UID}.${name}`]);
      if (name !== 'app') await node.handlers.stopContainer(POD, container);
    }
  });

  it('is free beside a sidecar too, also for a container that runs in the shared pool', async () => {
    const node = await simulatedNode();
    await create(node, containerNamed('sidecar', 1));
    const init = containerNamed('init', 5);
    await create(node, init);
    await node.handlers.stopContainer(POD, init);
    await create(node, containerNamed('app', 0.5));
    expect(Object.keys(held(node)).filter((uid) => uid.endsWith('.init'))).toEqual([]);
    await create(node, containerNamed('big', 5));
    expect(held(node)[`${UID}.big`]).toBeDefined();
  });

  it('is not what a container leaves while another one starts again', async () => {
    const node = await simulatedNode();
    const [one, two] = [containerNamed('one', 2), containerNamed('two', 2)];
    for (const each of [one, two]) await create(node, each);
    for (const each of [one, two]) await node.handlers.stopContainer(POD, each);
    await create(node, containerNamed('two', 2));
    expect(held(node)).toEqual({ [`${UID}.one`]: '0-1', [`${UID}.two`]: '2-3' });
  });

  it('is not given to others while a process of theirs is left', async () => {
    const node = await simulatedNode();
    const init = containerNamed('init', 2);
    await create(node, init);
    node.makeCgroup(init.linux.cgroups_path, '0-1', [1]);
    await node.handlers.stopContainer(POD, init);
    await create(node, containerNamed('app', 2));
    expect(held(node)).toEqual({ [`${UID}.init`]: '0-1', [`${UID}.app`]: '2-3' });
  });
});
