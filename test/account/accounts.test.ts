// needs: nothing
// Any sequence of admissions, starts, releases and openings, on any machine: the memory account is
// right, and no device is granted twice.
import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceSpec } from '../../lib/entries/topology.js';
import { AdmissionError, type Manager, openManager, type Pod } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { MI, machineOf } from '../support/memory-machine.js';
import { guaranteed } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const GPU = 'example.com/gpu';
const HUGE = 'hugepages-2Mi';

const node = fc.record({
  cpus: fc.integer({ min: 0, max: 4 }),
  memory: fc.nat(1024),
  pages: fc.nat(8),
  reserved: fc.nat(20),
});
const machine = fc
  .array(node, { minLength: 1, maxLength: 4 })
  .filter((nodes) => nodes.reduce((sum, { cpus }) => sum + cpus, 0) >= 2);
const devices = fc.array(
  fc.record({
    nodes: fc.option(fc.array(fc.nat(3), { maxLength: 2 })),
    healthy: fc.constantFrom(true, true, false),
  }),
  { maxLength: 6 },
);

const container = fc.record({
  kind: fc.constantFrom('init', 'sidecar', 'app', 'app'),
  cpu: fc.constantFrom('100m', 1, 2),
  memory: fc.integer({ min: 1, max: 700 }),
  pages: fc.nat(6),
  gpus: fc.nat(2),
});
const admission = fc.record({
  do: fc.constant('admit' as const),
  containers: fc.array(container, { minLength: 1, maxLength: 3 }),
  policy: fc.constantFrom(
    'none' as const,
    'best-effort' as const,
    'restricted' as const,
    'single-numa-node' as const,
  ),
  scope: fc.constantFrom('container' as const, 'pod' as const),
});
const step = fc.oneof(
  { weight: 5, arbitrary: admission },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('start' as const), which: fc.nat(9), container: fc.nat(2) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
);

type Admission = typeof admission extends fc.Arbitrary<infer T> ? T : never;

async function admit(manager: Manager, { containers, policy, scope }: Admission): Promise<void> {
  const specs = containers.map(({ kind, cpu, memory, pages, gpus }, i) => ({
    kind,
    spec: {
      ...guaranteed(`c${i}`, { cpu, memory: memory * MI, [HUGE]: pages * 2 * MI, [GPU]: gpus }),
      ...(kind === 'sidecar' && { restartPolicy: 'Always' }),
    },
    gpus,
  }));
  const apps = specs.filter(({ kind }) => kind === 'app');
  if (apps.length === 0) return;
  const pod = {
    initContainers: specs.filter(({ kind }) => kind !== 'app').map(({ spec }) => spec),
    containers: apps.map(({ spec }) => spec),
  };
  const options = { owner: 'persistent' as const, policy, scope };
  const plan = manager.plan(pod, options);
  let admitted: Pod;
  try {
    admitted = await manager.admit(pod, options);
  } catch (error) {
    if (!(error instanceof AdmissionError)) throw error;
    expect(plan).toMatchObject({ admitted: false, code: error.code, reason: error.details.reason });
    return;
  }
  expect(plan.containers).toEqual(admitted.containers);
  for (const { spec, gpus } of specs) {
    expect(admitted.container(spec.name).devices[GPU] ?? []).toHaveLength(gpus);
  }
}

function checkMemory(manager: Manager): void {
  const blocks = manager.grants().flatMap(({ memory }) => memory);
  for (const table of manager.memory()) {
    const { node, type, total, systemReserved, allocatable, reserved, free, group } = table;
    expect(free + reserved + systemReserved).toBe(total);
    expect(reserved).toBeLessThanOrEqual(allocatable);
    expect(group).toContain(node);
    // Groups are disjoint: every node of a group reports the same group.
    for (const other of manager.memory()) if (group.includes(other.node)) expect(other.group).toEqual(group);
    const held = blocks.filter((block) => block.type === type && block.nodes.includes(node));
    const onGroup = manager.memory().filter((other) => other.type === type && group.includes(other.node));
    expect(onGroup.reduce((sum, other) => sum + other.reserved, 0)).toBe(
      held.reduce((sum, { bytes }) => sum + bytes, 0),
    );
  }
}

function checkDevices(manager: Manager, registered: readonly DeviceSpec[]): void {
  const known = new Map(registered.map((device) => [device.id, device]));
  const ids = manager.grants().flatMap(({ devices }) => (devices[GPU] ?? []).map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(known.get(id)?.healthy).toBe(true);
  for (const { uid } of manager.grants()) {
    const together = manager.pod(uid).containers.filter(({ kind }) => kind !== 'init');
    const own = together.flatMap((each) => (each.devices[GPU] ?? []).map((device) => device.id));
    expect(new Set(own).size).toBe(own.length);
  }
}

// Each machine has a folder for the whole run: an open folder stays for the life of the process.
const MACHINES = 60;

async function sampled() {
  const specs = fc.sample(fc.record({ nodes: machine, places: devices }), MACHINES);
  return Promise.all(
    specs.map(async ({ nodes, places }) => {
      const topology = await machineOf(
        nodes.map(({ cpus, memory, pages }) => ({
          ...{ cpus, memory: (memory + 2 * pages) * MI, hugepages: { 2048: pages } },
        })),
      );
      const gpus = places.map(({ nodes: near, healthy }, i) => {
        return { id: `gpu${i}`, healthy, numaNodes: near?.filter((id) => id < nodes.length) ?? null };
      });
      const reservedMemory = nodes.map(({ memory, reserved }, numaNode) => ({
        ...{ numaNode, limits: { memory: Math.min(memory, reserved) * MI } },
      }));
      return {
        topology,
        stateDir: makeStateDir(existsSync('/dev/shm') ? '/dev/shm' : undefined),
        devices: { [GPU]: gpus },
        reservedMemory,
      };
    }),
  );
}

describe('random sequences of admit, start, release and reopen', () => {
  it('keep free + reserved + system-reserved = total on every node, groups disjoint, and every device with one pod', async () => {
    const machines = await sampled();
    await fc.assert(
      fc.asyncProperty(
        fc.nat(MACHINES - 1),
        fc.array(step, { minLength: 1, maxLength: 12 }),
        async (which, sequence) => {
          const options = machines[which]!;
          let manager = await openManager(options);
          for (const { uid } of manager.grants()) await manager.release(uid);
          for (const each of sequence) {
            const grants = manager.grants();
            if (each.do === 'admit') await admit(manager, each);
            if (each.do === 'start' && grants.length > 0) {
              const pod = manager.pod(grants[each.which % grants.length]!.uid);
              await pod.markStarted(pod.containers[each.container % pod.containers.length]!.name);
            }
            if (each.do === 'release' && grants.length > 0) {
              await manager.release(grants[each.which % grants.length]!.uid);
            }
            if (each.do === 'reopen') {
              const before = [manager.grants(), manager.memory()];
              manager.close();
              manager = await openManager(options);
              expect([manager.grants(), manager.memory()]).toEqual(before);
            }
            checkMemory(manager);
            checkDevices(manager, options.devices[GPU]!);
          }
          for (const { uid } of manager.grants()) await manager.release(uid);
          expect(manager.memory().every(({ reserved }) => reserved === 0)).toBe(true);
          manager.close();
        },
      ),
      { numRuns: budget({ all: 1_500, usual: 30 }) },
    );
  });
});
