// The published figures equal the answers of plan: on simulated machines, after any admissions.
import fc from 'fast-check';
import {
  type AdmitOptions,
  CpuSet,
  type Manager,
  type ManagerOptions,
  openManager,
  type PodSpec,
} from 'numalign';
import { discover, type MachineJson } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import { irregularMachines } from '../../../../test/support/random-machine.js';
import type { Zone } from '../../lib/publish/node-resource-topology.js';
import { zonesOf } from '../../lib/publish/zones.js';

const GI = 2 ** 30;
const PAGE = 2 ** 21;
const NIC = 'example.com/nic';
const anchor = (node: number) => `test.numalign.io/node-${node}`;

async function open(json: MachineJson, options: Omit<ManagerOptions, 'readOnly' | 'topology'>) {
  const topology = await discover({ json });
  const manager = await openManager({ topology, ...options });
  // A pod that asks for the device of a node can only be placed there.
  for (const node of topology.numaNodes)
    manager.registerDevices(anchor(node), [{ id: 'anchor', numaNodes: [node] }]);
  return manager;
}

const isAnchor = (name: string) => name.startsWith('test.numalign.io/');

/** True if plan admits a Guaranteed pod with this request, to exactly this NUMA node. */
function fits(manager: Manager, node: number, resources: Record<string, number | string>): boolean {
  const limits = { cpu: '100m', memory: 1, [anchor(node)]: 1, ...resources };
  const pod = { name: 'asked', containers: [{ name: 'main', limits }] };
  const plan = manager.plan(pod, { policy: 'single-numa-node' });
  const cpus = manager.topology.nodes.find(({ id }) => id === node)!.cpus;
  return plan.admitted && plan.containers.every((each) => each.cpus === null || each.cpus.isSubsetOf(cpus));
}

const UNITS: Record<string, number> = { memory: 1, 'hugepages-2Mi': PAGE };

const amountIn = (zone: Zone, name: string) =>
  Number(zone.resources.find((resource) => resource.name === name)?.available ?? 0);

/** The law. A Guaranteed pod also needs some memory besides the resource, which must be there. */
function check(manager: Manager, wholeCores: boolean): void {
  const zones = zonesOf(manager);
  expect(zones.map(({ name }) => name)).toEqual(manager.topology.numaNodes.map((id) => `node-${id}`));
  const hasMemory = manager.memory().some(({ total }) => total > 0);
  for (const [i, node] of manager.topology.numaNodes.entries()) {
    const zone = zones[i]!;
    if (hasMemory && amountIn(zone, 'memory') < 1) {
      expect(fits(manager, node, {})).toBe(false);
      continue;
    }
    for (const { name, available, allocatable, capacity } of zone.resources) {
      expect(Number(available)).toBeLessThanOrEqual(Number(allocatable));
      expect(Number(allocatable)).toBeLessThanOrEqual(Number(capacity));
      if (isAnchor(name)) continue;
      const unit = name === 'cpu' && wholeCores ? manager.topology.cpusPerCore : (UNITS[name] ?? 1);
      const amount = Number(available);
      const text = `${name} on node ${node}: ${available}`;
      if (amount > 0) expect(fits(manager, node, { [name]: amount }), text).toBe(true);
      expect(fits(manager, node, { [name]: amount + unit }), `${text} and one more`).toBe(false);
    }
  }
}

const policies = fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node' as const);

/** Allocations of a kubelet, by indexes of the machine's resources. */
const kubelets = fc.option(
  fc.record({
    cpus: fc.array(fc.nat(20), { maxLength: 3 }),
    nodes: fc.array(fc.nat(4), { minLength: 1, maxLength: 2 }),
    memory: fc.integer({ min: 1, max: 2048 }),
    nics: fc.array(fc.nat(5), { maxLength: 2 }),
  }),
);
type Given = typeof kubelets extends fc.Arbitrary<infer T> ? T : never;

async function record(manager: Manager, given: Given): Promise<void> {
  if (given === null) return;
  const { topology } = manager;
  const [ids, nodes] = [topology.cpus.toArray(), topology.numaNodes];
  const on = [...new Set(given.nodes.map((node) => nodes[node % nodes.length]!))].sort((a, b) => a - b);
  const container = {
    name: 'main',
    cpus: CpuSet.from(given.cpus.map((cpu) => ids[cpu % ids.length]!)),
    memory: [{ nodes: on, type: 'memory', bytes: given.memory * 2 ** 20 }],
    devices: { [NIC]: [...new Set(given.nics.map((nic) => `nic-${nic}`))] },
  };
  await manager.recordKubelet([{ uid: null, namespace: 'default', name: 'web', containers: [container] }]);
}

/** A new grant, or a pod that ends. */
const steps = fc.array(
  fc.record({
    cpu: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constant('500m')),
    memory: fc.integer({ min: 1, max: 6 * 1024 }),
    pages: fc.nat(40),
    nics: fc.nat(2),
    policy: policies,
    scope: fc.constantFrom('container', 'pod' as const),
    smt: fc.constantFrom(undefined, undefined, 'hold-sibling' as const),
    isolation: fc.constantFrom('never', 'never', 'prefer' as const),
    leaves: fc.nat(3),
  }),
  { maxLength: 12 },
);
type Step = typeof steps extends fc.Arbitrary<infer T> ? (T extends (infer U)[] ? U : never) : never;

async function admit(manager: Manager, list: readonly Step[]): Promise<void> {
  const uids: string[] = [];
  for (const { cpu, memory, pages, nics, policy, scope, smt, isolation, leaves } of list) {
    const limits = {
      cpu,
      memory: memory * 2 ** 20,
      ...(pages > 0 && { 'hugepages-2Mi': pages * PAGE }),
      ...(nics > 0 && { [NIC]: nics }),
    };
    const pod: PodSpec = { containers: [{ name: 'main', limits }] };
    const options: AdmitOptions = { policy, scope, isolation, ...(smt && { smt }) };
    try {
      uids.push((await manager.admit(pod, options)).uid);
    } catch {
      // Rejected: it takes nothing.
    }
    if (leaves === 0 && uids.length > 0) await manager.release(uids.shift()!);
  }
}

/** Two to four nodes of cores with one or two threads, memory, hugepages and devices near one or two nodes. */
const machines = fc
  .record({
    threads: fc.integer({ min: 1, max: 2 }),
    nodes: fc.array(
      fc.record({
        cores: fc.integer({ min: 0, max: 4 }),
        gib: fc.integer({ min: 1, max: 4 }),
        pages: fc.nat(64),
      }),
      { minLength: 2, maxLength: 4 },
    ),
    nics: fc.array(fc.tuple(fc.nat(3), fc.nat(3)), { maxLength: 6 }),
  })
  .filter(({ nodes }) => nodes.reduce((sum, { cores }) => sum + cores, 0) >= 2)
  .map(({ threads, nodes, nics }) => {
    const cpus: number[][] = [];
    for (const [node, { cores }] of nodes.entries()) {
      for (let core = 0; core < cores; core++) {
        const first = cpus.length;
        for (let thread = 0; thread < threads; thread++) cpus.push([cpus.length, first, node, node]);
      }
    }
    const json = {
      columns: ['cpu', 'core', 'socket', 'numa'],
      cpus,
      nodes: nodes.map(({ gib, pages, cores }, id) => ({
        id,
        cpuLess: cores === 0,
        distances: nodes.map((_, other) => (other === id ? 10 : 21)),
        memory: gib * GI,
        hugepages: [{ sizeKiB: 2048, count: pages }],
      })),
    } as unknown as MachineJson;
    const near = (node: number) => node % nodes.length;
    const devices = nics.map(([a, b], i) => ({
      id: `nic-${i}`,
      numaNodes: [near(a), near(b)],
      healthy: i !== 4,
    }));
    return { json, devices };
  });

const settings = fc.record({
  reserved: fc.nat(2),
  strictCPUReservation: fc.boolean(),
  wholeCores: fc.boolean(),
  isolated: fc.nat(2),
  reservedMemory: fc.boolean(),
});

type Chosen = typeof settings extends fc.Arbitrary<infer T> ? T : never;

// The lowest are reserved, the highest isolated.
function optionsOf({ cpus }: MachineJson, chosen: Chosen): Omit<ManagerOptions, 'readOnly' | 'topology'> {
  const ids = cpus.map((row) => row[0]!);
  const { reserved, isolated, strictCPUReservation, wholeCores } = chosen;
  return {
    reservedSystemCPUs: ids.slice(0, reserved).join(','),
    isolatedCPUs: isolated === 0 ? '' : ids.slice(reserved).slice(-isolated).join(','),
    ...(reserved > 0 && { strictCPUReservation }),
    ...(wholeCores && { cpuManagerPolicyOptions: { 'full-pcpus-only': true } }),
    ...(chosen.reservedMemory && {
      reservedMemory: [{ numaNode: 0, limits: { memory: '256Mi' } }],
    }),
  };
}

describe('what is published of a machine', () => {
  it('equals the answers of plan, on machines with memory, hugepages and devices', async () => {
    await fc.assert(
      fc.asyncProperty(
        machines,
        settings,
        steps,
        kubelets,
        async ({ json, devices }, chosen, list, given) => {
          const manager = await open(json, optionsOf(json, chosen)).catch(() => null);
          fc.pre(manager !== null);
          using opened = manager;
          if (devices.length > 0) opened.registerDevices(NIC, devices);
          check(opened, chosen.wholeCores);
          await admit(opened, list);
          check(opened, chosen.wholeCores);
          await record(opened, given);
          check(opened, chosen.wholeCores);
        },
      ),
      { numRuns: budget({ all: 300, usual: 12 }) },
    );
  });

  it('equals the answers of plan, on machines of uneven cores with holes in their numbers', async () => {
    await fc.assert(
      fc.asyncProperty(irregularMachines, settings, steps, kubelets, async (json, chosen, list, given) => {
        const manager = await open(json, { ...optionsOf(json, chosen), reservedMemory: [] }).catch(
          () => null,
        );
        fc.pre(manager !== null);
        using opened = manager;
        check(opened, chosen.wholeCores);
        await admit(opened, list);
        check(opened, chosen.wholeCores);
        await record(opened, given);
        check(opened, chosen.wholeCores);
      }),
      { numRuns: budget({ all: 300, usual: 12 }) },
    );
  });
});

it('Zones end where a scheduler stops reading', async () => {
  const ids = [0, 63, 64];
  const cpus = ids.map((id, cpu) => [cpu, cpu, cpu, id]);
  const nodes = ids.map((id) => ({ id, memory: GI, distances: [10, 20, 30] }));
  const json = { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes } as unknown as MachineJson;
  using manager = await open(json, {});
  const zones = zonesOf(manager);
  expect(zones.map(({ name }) => name)).toEqual(['node-0', 'node-63']);
  expect(zones[0]!.costs).toEqual([
    { name: 'node-0', value: 10 },
    { name: 'node-63', value: 20 },
  ]);
});
