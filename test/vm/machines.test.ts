// needs: nothing
// The machines of test/vm, as lstopo saw them when they ran (npm run test:vm -- --fixtures):
// discovery and planning without QEMU.
import { describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet, NodeSet } from '../../lib/index.js';
import { simulate } from '../support/simulated.js';
import { FIXTURES } from './shapes.mjs';

const machineOf = (name: string) => discover({ xml: `test/fixtures/machines/${name}.xml` });
const withMemory = ({ nodes }: Topology) =>
  nodes.filter(({ cpus, memoryBytes }) => !cpus.isEmpty && memoryBytes > 0);

describe.each(FIXTURES)('the machine $name', ({ name, ...shape }) => {
  const nodeCpus = shape.xmlNodeCpus ?? shape.nodeCpus;

  it('has the CPUs of each node where QEMU’s arguments put them', async () => {
    const machine = await machineOf(name);
    expect(machine.nodes.map(({ cpus }) => String(cpus))).toEqual(nodeCpus);
    expect(machine.cpus).toEqual(
      nodeCpus.map((list) => CpuSet.parse(list)).reduce((all, more) => all.union(more)),
    );
    expect(machine.nodes.map(({ distances }) => distances?.length)).toEqual(
      nodeCpus.map(() => nodeCpus.length),
    );
    expect(machine.cores.filter(({ cpus }) => cpus.size === 1).length).toBe(name === 'cpu-holes' ? 3 : 0);
  });

  it('gives CPUs and memory of one node to each pod, until none fits', async () => {
    const machine = await machineOf(name);
    const manager = await simulate(machine, { reservedSystemCPUs: '0' });
    const used = new Set<number>();
    const request = { cpu: 2, memory: '64Mi', policy: 'single-numa-node' } as const;
    let grants = 0;
    for (; ; grants++) {
      const grant = await manager.acquire(request).catch(() => undefined);
      if (!grant) break;
      const [node, ...more] = machine.nodesOf(grant.cpus).toArray();
      expect([more, grant.memory]).toEqual([[], [{ type: 'memory', bytes: 64 * 2 ** 20, nodes: [node] }]]);
      used.add(node!);
    }
    const pairs = (cpus: CpuSet) => Math.floor(cpus.difference(CpuSet.of(0)).size / 2);
    const roomy = withMemory(machine).filter(({ cpus }) => pairs(cpus) > 0);
    expect([...used].sort((a, b) => a - b)).toEqual(roomy.map(({ id }) => id));
    expect(grants).toBe(roomy.reduce((sum, { cpus }) => sum + pairs(cpus), 0));
  });

  it('has no single node for more CPUs than one node has, and best-effort takes several', async () => {
    const machine = await machineOf(name);
    const manager = await simulate(machine);
    const cpu = Math.max(...machine.nodes.map(({ cpus }) => cpus.size)) + 1;
    await expect(manager.acquire({ cpu, policy: 'single-numa-node' })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_(TOPOLOGY_AFFINITY|SHARED_POOL_EMPTY|INSUFFICIENT_CPUS)$/),
    });
    if (cpu >= machine.cpus.size) return;
    const { cpus } = await manager.acquire({ cpu, policy: 'best-effort' });
    expect(machine.nodesOf(cpus).size).toBe(2);
  });
});

it('gives PCI devices with CPUs of their nodes, if it has devices', async () => {
  const machine = await machineOf('4-nodes-pci');
  const near = machine.devices.filter(({ numaNodes }) => numaNodes !== null);
  expect(near.map(({ kind, numaNodes }) => `${kind} ${numaNodes}`)).toEqual([
    'network 1',
    'storage 1',
    'network 3',
    'storage 3',
  ]);
  for (const { id, numaNodes } of near) {
    const manager = await simulate(machine, { devices: { 'example.com/device': { id } } });
    const grant = await manager.acquire({
      ...{ cpu: 2, memory: '64Mi', resources: { 'example.com/device': 1 } },
      policy: 'single-numa-node',
    });
    expect([grant.numaNodes, grant.memoryNodes]).toEqual([
      NodeSet.from(numaNodes!),
      NodeSet.from(numaNodes!),
    ]);
  }
});
