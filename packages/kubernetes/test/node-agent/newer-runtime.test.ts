// A runtime of NRI 0.12.2, which no Debian has: it is played here.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { expect, it, onTestFinished } from 'vitest';
import { NumalignNode, type NumalignNodeOptions } from '../../lib/node.js';
import { FakeRuntime } from '../support/fake-runtime.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { socketFolder } from '../support/socket-folder.js';

const POD = podOf();
const EXCLUSIVE = containerOf({ id: 'own', cpus: 2, memory: 2 ** 20 });

/** A node at a runtime that says it has this version of NRI. */
async function sessionWith(version: string, given: Partial<NumalignNodeOptions> = {}) {
  const { folder, socketPath, remove } = socketFolder();
  onTestFinished(remove);
  const cgroupRoot = join(folder, 'cgroups');
  mkdirSync(join(cgroupRoot, 'k/own'), { recursive: true });
  writeFileSync(join(cgroupRoot, 'cpuset.cpus'), '0-7');
  const manager = await openManager({
    topology: await discover({ synthetic: 'numa:2(memory=8GB) core:4 pu:1' }),
  });
  onTestFinished(() => manager.close());
  const runtime = await FakeRuntime.listen(socketPath);
  onTestFinished(() => runtime.close());
  const options = { manager, nriSocket: socketPath, runtimeSocket: null, cgroupRoot };
  const node = new NumalignNode({ ...options, ...given });
  const started = node.start();
  onTestFinished(() => node.close());
  const plugin = await runtime.plugin();
  await plugin.configure({ NRI_version: version });
  await plugin.synchronize([], []);
  await started;
  return { node, runtime, plugin, cgroup: join(cgroupRoot, 'k/own') };
}

it('binds the memory of a container by its policy too', async () => {
  const { plugin } = await sessionWith('v0.12.0');
  const { adjust } = await plugin.createContainer(POD, EXCLUSIVE);
  expect(adjust.linux.memory_policy).toEqual({ mode: 2, nodes: '0' });
  expect(adjust.linux.resources.cpu.mems).toBe('0');
  const { adjust: shared } = await plugin.createContainer(POD, containerOf({ id: 'shared' }));
  expect(shared.linux.memory_policy).toBeNull();
});

it('has no policy asked of it if it is older', async () => {
  const { plugin } = await sessionWith('v0.11.0');
  const { adjust } = await plugin.createContainer(POD, EXCLUSIVE);
  expect(adjust.linux.memory_policy).toBeNull();
});

it('hears of a repair over NRI, and reports events by a call for each', async () => {
  const { plugin, cgroup } = await sessionWith('v0.12.2');
  await plugin.createContainer(POD, EXCLUSIVE);
  writeFileSync(join(cgroup, 'cpuset.cpus'), '0-1');
  await plugin.event('StartContainer', POD, EXCLUSIVE, 'call');
  writeFileSync(join(cgroup, 'cpuset.cpus'), '0-7');
  await expect
    .poll(() => plugin.updates)
    .toMatchObject([
      { update: [{ container_id: 'own', linux: { resources: { cpu: { cpus: '0-1', mems: '0' } } } }] },
    ]);
});

it('says when its condition has changed: by then it is the new one', async () => {
  const seen: boolean[] = [];
  const session = sessionWith('v0.12.2', {
    conditionChanged: async () => seen.push((await session).node.condition.isMet),
  });
  const { runtime, node } = await session;
  await expect.poll(() => seen).toEqual([true]);
  await runtime.close();
  await expect.poll(() => seen).toEqual([true, false]);
  expect(node.condition.isMet).toBe(false);
});
