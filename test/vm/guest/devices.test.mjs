// PCI devices with their nodes, and grants of them, on a machine that has some on different nodes.
// Root. Run by node --test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { discover } from '../../../dist/entries/topology.js';
import * as kernel from './kernel-view.mjs';
import { newStateDir, open } from './state-folders.mjs';

const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const PCI = '/sys/bus/pci/devices';
const nodeOf = (id) => Number(kernel.read(PCI, id, 'numa_node'));
const localCpus = (id) => kernel.parseList(kernel.read(PCI, id, 'local_cpulist'));
const isBridge = (id) => kernel.read(PCI, id, 'class').startsWith('0x06');
const withNodes = ({ devices }) => devices.filter(({ numaNodes }) => numaNodes !== null);
const topology = await discover();

test('the machine has the devices of sysfs, with their nodes', () => {
  const expected = readdirSync(PCI)
    .filter((id) => !isBridge(id))
    .sort()
    .map((id) => [id, nodeOf(id) === -1 ? null : [nodeOf(id)]]);
  assert.deepEqual(
    topology.devices.map(({ id, numaNodes }) => [id, numaNodes && [...numaNodes]]),
    expected,
  );
  const nodes = new Set(withNodes(topology).map(({ numaNodes }) => numaNodes[0]));
  assert.deepEqual([...nodes].sort(), [1, 3], 'devices on nodes 1 and 3 were meant');
});

test('a device comes with CPUs and memory of its node, which the kernel lists as local to it', async () => {
  const manager = await open();
  for (const { id, numaNodes } of withNodes(topology)) {
    manager.registerDevices('example.com/device', { id });
    const request = {
      cpu: 2,
      memory: '64Mi',
      resources: { 'example.com/device': 1 },
      policy: 'single-numa-node',
    };
    const grant = await manager.acquire(request);
    assert.deepEqual(
      grant.devices['example.com/device'].map((device) => device.id),
      [id],
    );
    const local = localCpus(id);
    for (const cpu of grant.cpus)
      assert.ok(local.includes(cpu), `CPU ${cpu} is not local to ${id}: ${local}`);
    assert.deepEqual(grant.memoryNodes.toArray(), [...numaNodes]);
    // No second grant has the device.
    await assert.rejects(manager.acquire(request), { code: 'ERR_TOPOLOGY_AFFINITY' });
    await grant.release();
  }
});

test('a device whose node has no CPUs left is refused, and best-effort takes it nevertheless', async () => {
  const [{ id, numaNodes }] = withNodes(topology);
  const manager = await open({ reservedSystemCPUs: kernel.cpusOfNode(numaNodes[0]).join() });
  manager.registerDevices('example.com/device', { id });
  const request = { cpu: 2, resources: { 'example.com/device': 1 } };
  await assert.rejects(manager.acquire({ ...request, policy: 'single-numa-node' }), {
    code: 'ERR_TOPOLOGY_AFFINITY',
  });
  const grant = await manager.acquire({ ...request, policy: 'best-effort' });
  for (const cpu of grant.cpus) assert.ok(!localCpus(id).includes(cpu));
  await grant.release();
});

test('the command line runs a command near a device', () => {
  const { id } = topology.devices.find(({ kind, numaNodes }) => kind === 'network' && numaNodes?.[0] === 3);
  const options = ['--cpus', '2', '--policy', 'single-numa-node', '--silent', '--state-dir', newStateDir()];
  const device = ['--resource', 'example.com/nic=1', '--device', `example.com/nic=id:${id}`];
  const args = [
    CLI,
    'run',
    ...options,
    ...device,
    '--',
    'sh',
    '-c',
    'cat /proc/self/status; echo $NUMALIGN_DEVICES',
  ];
  const answer = execFileSync(process.execPath, args, { encoding: 'utf8' });
  for (const cpu of kernel.maskIn(answer)) assert.ok(localCpus(id).includes(cpu));
  assert.deepEqual(JSON.parse(answer.trim().split('\n').at(-1)), { 'example.com/nic': [id] });
});

test('virtual functions have their parent and its node, and are granted on that node', async () => {
  const parent = readdirSync(PCI).find((id) => existsSync(join(PCI, id, 'sriov_numvfs')));
  assert.ok(parent, 'a device with virtual functions was meant');
  writeFileSync(join(PCI, parent, 'sriov_drivers_autoprobe'), '0');
  writeFileSync(join(PCI, parent, 'sriov_numvfs'), '2');
  try {
    const made = ['virtfn0', 'virtfn1'].map((name) => basename(readlinkSync(join(PCI, parent, name)))).sort();
    const manager = await open();
    const seen = manager.topology.devices.filter((device) => device.parent !== null);
    assert.deepEqual(
      seen.map((device) => [device.id, device.parent, device.numaNodes?.join()]),
      made.map((id) => [id, parent, String(nodeOf(parent))]),
    );
    for (const id of made) assert.equal(nodeOf(id), nodeOf(parent));
    manager.registerDevices('example.com/vf', { parent, isVirtualFunction: true });
    const resources = { 'example.com/vf': 2 };
    const grant = await manager.acquire({ cpu: 2, resources, policy: 'single-numa-node' });
    assert.deepEqual(grant.devices['example.com/vf'].map(({ id }) => id).sort(), made);
    for (const cpu of grant.cpus) assert.ok(localCpus(made[0]).includes(cpu));
    await grant.release();
  } finally {
    writeFileSync(join(PCI, parent, 'sriov_numvfs'), '0');
  }
});
