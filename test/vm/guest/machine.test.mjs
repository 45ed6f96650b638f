// Discovery, compared with sysfs, numactl -H and lstopo of the same machine. Root. Run by node
// --test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { discover } from '../../../dist/entries/topology.js';
import { CpuSet } from '../../../dist/index.js';
import { SHAPES } from '../shapes.mjs';
import * as kernel from './kernel-view.mjs';

const CLI = fileURLToPath(new URL('../../../packages/cli/dist/main.cjs', import.meta.url));
const shape = SHAPES.find(({ name }) => name === process.env.NUMALIGN_SHAPE);
const list = (numbers) => String(CpuSet.from(numbers));
const topology = await discover();

/** `{ id: list }` of groups of CPUs. */
const groups = (found) => Object.fromEntries(found.map(({ id, cpus }) => [id, String(cpus)]));
/** The groups in a file of each CPU's folder, by their lowest CPU. */
const groupsByFile = (file) =>
  Object.fromEntries(
    kernel
      .online()
      .map((cpu) => kernel.listOfCpu(cpu, file))
      .map((cpus) => [Math.min(...cpus), list(cpus)]),
  );

test('the machine is the expected one', {
  skip: shape === undefined && 'not booted by test/vm',
}, () => {
  assert.deepEqual(
    kernel.nodeIds().map((node) => list(kernel.cpusOfNode(node))),
    shape.nodeCpus,
  );
});

test('its CPUs are those of sysfs: online, possible, isolated', () => {
  assert.equal(String(topology.cpus), list(kernel.online()));
  assert.equal(String(topology.possible), list(kernel.possible()));
  assert.equal(
    String(topology.isolated),
    list(kernel.parseList(kernel.read('/sys/devices/system/cpu/isolated'))),
  );
  assert.equal(String(topology.allowed), list(kernel.online()));
});

test('its packages, dies and cores are those of sysfs', () => {
  const packages = new Map();
  for (const cpu of kernel.online()) {
    const id = kernel.numberOfCpu(cpu, 'topology/physical_package_id');
    packages.set(id, [...(packages.get(id) ?? []), cpu]);
  }
  assert.deepEqual(Object.values(groups(topology.packages)).sort(), [...packages.values()].map(list).sort());
  assert.deepEqual(groups(topology.cores), groupsByFile('topology/core_cpus_list'));
  assert.deepEqual(groups(topology.dies), groupsByFile('topology/die_cpus_list'));
});

test('its L3 groups are those of sysfs', () => {
  const index = ['index3', 'index2', 'index1', 'index0'].find((name) => {
    try {
      return kernel.read(`/sys/devices/system/cpu/cpu0/cache/${name}/level`) === '3';
    } catch {
      return false;
    }
  });
  const found = topology.l3Groups.map(({ cpus }) => String(cpus)).sort();
  const expected = index ? groupsByFile(`cache/${index}/shared_cpu_list`) : groups(topology.packages);
  assert.deepEqual(found, Object.values(expected).sort());
});

test('its NUMA nodes are those of sysfs: CPUs, memory, distances', () => {
  assert.deepEqual(topology.numaNodes, kernel.nodeIds());
  for (const { id, cpus, memoryBytes, distances } of topology.nodes) {
    assert.equal(String(cpus), list(kernel.cpusOfNode(id)));
    assert.equal(memoryBytes, kernel.bytesOfNode(id));
    assert.deepEqual([...(distances ?? [])], kernel.distancesOfNode(id));
  }
  for (const { cpu, node } of topology.locations) assert.deepEqual(kernel.nodesOf([cpu]), [node]);
});

test('its NUMA nodes are those of numactl -H', () => {
  const text = kernel.output('numactl', '-H');
  for (const { id, cpus, memoryBytes } of topology.nodes) {
    const numbers = new RegExp(`^node ${id} cpus:(.*)$`, 'm')
      .exec(text)[1]
      .split(' ')
      .filter(Boolean)
      .map(Number);
    assert.equal(String(cpus), list(numbers));
    assert.equal(
      Math.floor(memoryBytes / 2 ** 20),
      Number(new RegExp(`^node ${id} size: (\\d+) MB`, 'm').exec(text)[1]),
    );
  }
  const rows = [...text.matchAll(/^\s+(\d+):((?:\s+\d+)+)\s*$/gm)];
  assert.deepEqual(
    rows.map(([, , row]) => row.trim().split(/\s+/).map(Number)),
    topology.nodes.map(({ distances }) => [...distances]),
  );
});

test('its objects are those of lstopo, and its XML describes the same machine', async () => {
  const xml = kernel.output('lstopo-no-graphics', '--whole-io', '--of', 'xml');
  const ids = (type) =>
    [...xml.matchAll(new RegExp(`<object type="${type}" os_index="(\\d+)"`, 'g'))]
      .map(([, id]) => Number(id))
      .sort((a, b) => a - b);
  assert.deepEqual(ids('PU'), topology.cpus.toArray());
  assert.equal(ids('Core').length, topology.cores.length);
  assert.equal(ids('Package').length, topology.packages.length);
  // hwloc leaves out nodes without memory, and puts their CPUs elsewhere.
  const withMemory = topology.nodes.filter(({ memoryBytes }) => memoryBytes > 0).map(({ id }) => id);
  assert.deepEqual(ids('NUMANode'), withMemory);
  if (withMemory.length < topology.nodes.length) return;
  const file = join(tmpdir(), `numalign-vm-${process.pid}.xml`);
  writeFileSync(file, xml);
  const described = (await discover({ xml: file })).toJSON();
  const plain = ({ devices, ...machine }) => ({
    ...machine,
    devices: devices.map(({ id, numaNodes }) => ({ id, numaNodes })),
  });
  // The kernel's lists of possible and isolated CPUs are not in the XML.
  const { possible, isolated } = described;
  assert.deepEqual(plain(described), { ...plain(topology.toJSON()), possible, isolated });
});

test('the command line prints the same', () => {
  const answer = execFileSync(process.execPath, [CLI, 'topology', '--output', 'json'], { encoding: 'utf8' });
  const { cpus, nodes, numCpus } = JSON.parse(answer);
  const own = topology.toJSON();
  assert.deepEqual({ cpus, nodes, numCpus }, { cpus: own.cpus, nodes: own.nodes, numCpus: own.numCpus });
});

test('a CPU that is offline is possible and not online, and its node has one less', async () => {
  const cpu = kernel.online().at(-1);
  const [node] = kernel.nodesOf([cpu]);
  const file = `/sys/devices/system/cpu/cpu${cpu}/online`;
  writeFileSync(file, '0');
  try {
    const now = await discover();
    assert.equal(String(now.cpus), list(kernel.online()));
    assert.ok(!now.cpus.has(cpu) && now.possible.has(cpu));
    const { cpus } = now.nodes.find(({ id }) => id === node) ?? { cpus: CpuSet.EMPTY };
    assert.equal(String(cpus), list(kernel.cpusOfNode(node)));
  } finally {
    writeFileSync(file, '1');
  }
  assert.deepEqual((await discover()).toJSON(), topology.toJSON());
});
