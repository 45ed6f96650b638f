// needs: nothing
// A machine as devices of Dynamic Resource Allocation.
import fc from 'fast-check';
import { CpuSet } from 'numalign';
import { discover, type Topology } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import { irregularMachines } from '../../../../test/support/random-machine.js';
import {
  capacityName,
  DEVICE_UNITS,
  type DeviceMachine,
  deviceNamed,
  devicesOf,
  memoryType,
} from '../../lib/devices/devices.js';

const GI = 2 ** 30;

async function machine(more: Partial<DeviceMachine> = {}, synthetic?: string): Promise<DeviceMachine> {
  const topology = await discover({
    synthetic: synthetic ?? 'package:2 numa:2(memory=8GiB) l3:1 core:4 pu:2',
  });
  const memory = topology.nodes.map(({ id, memoryBytes }) => ({
    node: id,
    type: 'memory',
    bytes: memoryBytes,
  }));
  return { topology, cpus: topology.cpus, keepsOne: false, wholeCores: false, memory, ...more };
}

const names = (devices: readonly { name: string }[]) => devices.map(({ name }) => name);
const allow = (topology: Topology, without: string) => topology.cpus.difference(CpuSet.parse(without));

describe('NUMA nodes as devices', () => {
  it('have CPUs and memory, of which claims take parts', async () => {
    const [first, ...others] = devicesOf(await machine(), 'node');
    expect(names(others)).toEqual(['node-1', 'node-2', 'node-3']);
    expect(first).toMatchObject({ name: 'node-0', kind: 'node', node: 0, l3: 0, isShared: true });
    expect(Object.fromEntries(first!.attributes)).toEqual({
      'resource.kubernetes.io/numaNode': 0,
      kind: 'node',
      socket: 0,
      l3: 0,
      smt: true,
      coreKind: 'performance',
      tier: 'dram',
    });
    expect(Object.fromEntries(first!.capacity)).toEqual({
      cpu: { value: 8, default: 1, least: 1, step: 1 },
      memory: { value: 8 * GI, default: 0 },
    });
  });

  it('lack the CPUs that claims cannot have', async () => {
    const { topology } = await machine();
    const devices = devicesOf(await machine({ cpus: allow(topology, '0-1,8-15') }), 'node');
    expect(devices.map(({ name, capacity }) => [name, capacity.get('cpu')!.value])).toEqual([
      ['node-0', 6],
      ['node-2', 8],
      ['node-3', 8],
    ]);
  });

  it('leave one CPU if nothing else would have any, or a core where claims get whole ones', async () => {
    const cpusOf = async (more: Partial<DeviceMachine>) =>
      devicesOf(await machine({ keepsOne: true, ...more }), 'node')[0]!.capacity.get('cpu');
    expect(await cpusOf({})).toMatchObject({ value: 7, step: 1 });
    expect(await cpusOf({ wholeCores: true })).toEqual({ value: 6, default: 2, least: 2, step: 2 });
  });

  it('have no step where the API takes none', async () => {
    const { topology } = await machine();
    const [device] = devicesOf(await machine({ cpus: CpuSet.of(3), topology }), 'node');
    expect(device!.capacity.get('cpu')).toEqual({ value: 1, default: 1, least: 1 });
  });

  it('have their hugepages in whole pages', async () => {
    const json = (await machine()).topology.toJSON();
    json.nodes[0]!.hugepages = [{ sizeKiB: 2048, count: 5 }];
    const topology = await discover({ json });
    const memory = [{ node: 0, type: 'hugepages-2Mi', bytes: 10 * 2 ** 20 + 1 }];
    const [device] = devicesOf(await machine({ topology, memory }), 'node');
    expect(device!.capacity.get('hugepages2Mi')).toEqual({
      value: 10 * 2 ** 20,
      default: 0,
      least: 0,
      step: 2 ** 21,
    });
  });
});

describe('smaller devices', () => {
  it('are L3 groups, with the memory of each NUMA node beside them', async () => {
    const devices = devicesOf(await machine({}, 'package:1 numa:2(memory=8GiB) l3:2 core:2 pu:1'), 'l3');
    expect(names(devices)).toEqual(['l3-0', 'l3-1', 'l3-2', 'l3-3', 'memory-0', 'memory-1']);
    expect(Object.fromEntries(devices[1]!.attributes)).toMatchObject({ l3: 1, smt: false });
    expect([...devices[1]!.capacity.keys()]).toEqual(['cpu']);
    expect([...devices[4]!.capacity.keys()]).toEqual(['memory']);
  });

  it('are the part of an L3 group in a NUMA node', async () => {
    const json = (await machine({}, 'package:1 numa:2(memory=8GiB) core:2 pu:1')).topology.toJSON();
    const devices = devicesOf(await machine({ topology: await discover({ json }) }), 'l3');
    expect(names(devices).slice(0, 2)).toEqual(['l3-0-node-0', 'l3-0-node-1']);
    expect(devices.map(({ cpus }) => String(cpus)).slice(0, 2)).toEqual(['0-1', '2-3']);
  });

  it('are cores that are whole, or CPUs, for one claim each', async () => {
    const { topology } = await machine();
    const cpus = allow(topology, '1,4-31');
    expect(names(devicesOf(await machine({ cpus, memory: [] }), 'core'))).toEqual(['core-2']);
    const devices = devicesOf(await machine({ cpus, memory: [] }), 'cpu');
    expect(names(devices)).toEqual(['cpu-0', 'cpu-2', 'cpu-3']);
    expect(Object.fromEntries(devices[1]!.attributes)).toMatchObject({
      kind: 'cpu',
      core: 2,
      cpu: 2,
      smt: true,
    });
    expect(devices.map(({ isShared }) => isShared)).toEqual([false, false, false]);
  });
});

describe('attributes', () => {
  it('name the PCIe root near a device, or several where lists are allowed', async () => {
    const pcieRoots = [
      { root: 'pci0000:00', cpus: CpuSet.parse('0-7') },
      { root: 'pci0000:40', cpus: CpuSet.parse('0-15') },
    ];
    const rootsOf = async (hasLists: boolean) =>
      devicesOf(await machine({ pcieRoots, hasLists }), 'node').map(({ attributes }) =>
        attributes.get('resource.kubernetes.io/pcieRoot'),
      );
    expect(await rootsOf(false)).toEqual([undefined, 'pci0000:40', undefined, undefined]);
    expect(await rootsOf(true)).toEqual([['pci0000:00', 'pci0000:40'], 'pci0000:40', undefined, undefined]);
  });
});

describe('names', () => {
  it('say what a device stands for', async () => {
    const all = await machine();
    for (const unit of DEVICE_UNITS)
      for (const { name, kind, node, l3, cpus } of devicesOf(all, unit)) {
        expect(name).toMatch(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/);
        expect(deviceNamed(all.topology, name)).toEqual({ name, kind, node, l3, cpus });
      }
    for (const name of ['node-4', 'node-00', 'cpu-32', 'gpu-0', 'l3-0-node-1', ''])
      expect(deviceNamed(all.topology, name)).toBeUndefined();
  });

  it('of capacities stand for types of memory', () => {
    for (const type of ['memory', 'hugepages-2Mi', 'hugepages-1Gi', 'hugepages-64Ki']) {
      expect(capacityName(type)).toMatch(/^[a-z]\w{0,31}$/);
      expect(memoryType(capacityName(type))).toBe(type);
    }
    expect(memoryType('cpu')).toBeUndefined();
  });
});

describe('any machine', () => {
  it('has each CPU that claims may have in one device, and none that they may not have', async () => {
    const property = fc.asyncProperty(
      irregularMachines,
      fc.infiniteStream(fc.boolean()),
      async (json, choose) => {
        const topology = await discover({ json });
        const cpus = CpuSet.from([...topology.cpus].filter(() => choose.next().value));
        for (const unit of DEVICE_UNITS) {
          const all = devicesOf({ topology, cpus, keepsOne: false, wholeCores: false, memory: [] }, unit);
          const claimed = all.reduce((sum, device) => sum.union(device.cpus), CpuSet.EMPTY);
          expect(all.reduce((sum, device) => sum + device.cpus.size, 0)).toBe(claimed.size);
          expect(claimed.toString()).toBe((unit === 'core' ? topology.wholeCores(cpus) : cpus).toString());
          expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
        }
      },
    );
    await fc.assert(property, { numRuns: budget({ all: 500, usual: 20 }) });
  });
});
