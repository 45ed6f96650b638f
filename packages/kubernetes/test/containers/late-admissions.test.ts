// Containers that were created without numalign, and had no place when it came.
import { expect, it } from 'vitest';
import { ContainerState } from '../../lib/nri/messages.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { cpusByContainer, simulatedNode } from '../support/simulated-node.js';

const GIB = 2 ** 30;
const POD = podOf();
const exclusive = (id: string, cpus = 4) => ({
  ...containerOf({ id, cpus, memory: GIB }),
  state: ContainerState.RUNNING,
});

async function withoutRoom() {
  const node = await simulatedNode({ policy: 'single-numa-node' });
  const heard: string[] = [];
  node.manager.on('change', ({ added }) => heard.push(...added.map(({ uid }) => uid)));
  const grant = await node.manager.acquire({ cpu: 3 });
  const other = await node.manager.acquire({ cpu: 3 });
  await expect.poll(() => heard).toEqual([grant.uid, other.uid]);
  node.makeCgroup('/k/a', '0-7');
  const updates = await node.handlers.synchronize([POD], [exclusive('a', 3)]);
  return { ...node, grant, other, updates };
}

it('A container has its place as soon as there is room', async () => {
  const { handlers, manager, cpusOf, grant, updates, events } = await withoutRoom();
  expect(handlers.containers[0]!.placement).toBe(null);
  expect(cpusByContainer(updates)).toEqual({ a: String(manager.sharedPool()) });
  await grant.release();
  await expect.poll(() => handlers.containers[0]!.placement?.cpus?.size).toBe(3);
  const { cpus } = handlers.containers[0]!.placement!;
  expect(cpusOf('/k/a')).toBe(`${cpus}`);
  expect(manager.grants().map(({ uid }) => uid)).toContain('a');
  expect(events.map(({ reason }) => reason)).toEqual(['NotPlaced', 'CPUsAssigned']);
});

it('One that has ended by then has none', async () => {
  const { handlers, manager, grant, other } = await withoutRoom();
  await handlers.stopContainer(POD, exclusive('a', 3));
  await handlers.removeContainer(POD, exclusive('a', 3));
  await grant.release();
  await other.release();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(manager.grants()).toEqual([]);
});

it('Others leave its CPUs first, and none is moved without room', async () => {
  const { handlers, makeCgroup, cpusOf, grant, manager } = await withoutRoom();
  await handlers.createContainer(POD, containerOf({ id: 'b' }));
  // As the runtime does.
  makeCgroup('/k/b', String(manager.sharedPool()));
  const { cpus } = grant;
  await grant.release();
  await expect.poll(() => cpusOf('/k/a')).toBe(`${cpus}`);
  expect(cpusOf('/k/b')).toBe(`${manager.sharedPool()}`);
});

it('One that asks for less by then has that', async () => {
  const { handlers, grant } = await withoutRoom();
  const { linux } = containerOf({ id: 'a', cpus: 2, memory: GIB });
  await handlers.updateContainer(POD, exclusive('a', 3), linux!.resources!);
  await grant.release();
  await expect.poll(() => handlers.containers[0]!.placement?.cpus?.size).toBe(2);
});
