// needs: nothing
// Init containers that are placed with the whole pod in sight.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover, type MachineJson } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, NodeSet, openManager, type Plan } from '../../lib/index.js';
import { budget, isLong } from '../support/budget.mjs';
import { DeviceProvider } from '../support/device-provider.js';
import { irregularMachines } from '../support/random-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

// Two NUMA nodes of 32 CPUs.
const TWO_NODES = 'package:2 numa:1 core:32 pu:1';
const NODE_1 = NodeSet.of(1);

const container = (name: string, cpu: number) => guaranteed(name, { cpu });
const pod = {
  initContainers: [container('init', 1)],
  containers: [container('app', 26)],
};

/** Node 0 has 22 of its CPUs free, node 1 all 32. */
async function partlyTaken(): Promise<Manager> {
  const manager = await simulate(TWO_NODES, { policy: 'single-numa-node' });
  await manager.admit({ containers: [container('other', 10)] });
  return manager;
}

describe('an init container of 1 CPU before one of 26, where node 0 has fewer free', () => {
  it('takes its CPU of node 0, and the pod is refused, like by the kubelet', async () => {
    const manager = await partlyTaken();
    await expect(manager.admit(pod)).rejects.toMatchObject({
      code: 'ERR_TOPOLOGY_AFFINITY',
      details: { reason: 'TopologyAffinityError' },
    });
    expect(manager.plan(pod, { initContainerLookahead: false }).admitted).toBe(false);
  });

  it('takes it from node 1 with the lookahead, and the other reuses it', async () => {
    const manager = await partlyTaken();
    const { containers } = await manager.admit(pod, { initContainerLookahead: true });
    const [init, app] = containers.map(({ cpus }) => cpus!);
    expect(manager.topology.nodesOf(init!.union(app!))).toEqual(NODE_1);
    expect(init!.isSubsetOf(app!)).toBe(true);
    expect(containers.map(({ hint }) => hint)).toEqual([
      { nodes: NODE_1, preferred: true },
      { nodes: NODE_1, preferred: true },
    ]);
  });

  it('gets the lookahead from an option of the manager, unless the request says otherwise', async () => {
    const manager = await simulate(TWO_NODES, {
      policy: 'single-numa-node',
      initContainerLookahead: true,
    });
    await manager.admit({ containers: [container('other', 10)] });
    expect(manager.plan(pod).admitted).toBe(true);
    expect(manager.plan(pod, { initContainerLookahead: false }).admitted).toBe(false);
  });

  it('does not spread over two nodes under best-effort either', async () => {
    const manager = await partlyTaken();
    const nodes = (lookahead: boolean) =>
      nodesOf(manager, manager.plan(pod, { policy: 'best-effort', initContainerLookahead: lookahead }));
    expect([nodes(false).size, nodes(true)]).toEqual([2, NODE_1]);
  });

  it('goes where a sidecar before it goes too', async () => {
    const manager = await partlyTaken();
    const sidecar = { ...container('sidecar', 1), restartPolicy: 'Always' };
    const plan = manager.plan(
      { ...pod, initContainers: [sidecar, ...pod.initContainers] },
      { initContainerLookahead: true },
    );
    expect(nodesOf(manager, plan)).toEqual(NODE_1);
  });

  it.each([{ restartPolicy: 'Always' }, {}])(
    'is found after one without exclusive CPUs, which runs anywhere: %o',
    async (kind) => {
      const manager = await partlyTaken();
      const shared = { ...guaranteed('shared', { cpu: '500m' }), ...kind };
      const plan = manager.plan(
        { ...pod, initContainers: [shared, ...pod.initContainers] },
        { initContainerLookahead: true },
      );
      expect(nodesOf(manager, plan)).toEqual(NODE_1);
      expect(plan.containers[0]!.hint).toEqual({ nodes: null, preferred: true });
    },
  );

  it('is visible in the plan: the nodes that it was kept to are among the merged hints', async () => {
    const manager = await partlyTaken();
    const { hints } = manager.plan(pod, { initContainerLookahead: true });
    expect(hints.map(({ offered }) => offered.map(({ resource }) => resource))).toEqual([
      ['cpu', 'initContainerLookahead'],
      ['cpu'],
    ]);
    expect(hints[0]!.offered[1]!.hints.toArray()).toEqual([{ nodes: NODE_1, preferred: true }]);
  });

  it('gets no lookahead beside custom hint providers, which allocate only once', async () => {
    const manager = await partlyTaken();
    const provider = new DeviceProvider('example.com/nic', [1, 1]);
    manager.addHintProvider(provider);
    const asked = guaranteed('app', { cpu: 26, 'example.com/nic': 1 });
    await expect(
      manager.admit({ ...pod, containers: [asked] }, { initContainerLookahead: true }),
    ).rejects.toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    expect([...provider.holders]).toEqual([]);
  });

  it('takes only true or false as its option', async () => {
    const manager = await partlyTaken();
    expect(() => manager.plan(pod, { initContainerLookahead: 'yes' as never })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    );
    await expect(simulate(TWO_NODES, { initContainerLookahead: 1 as never })).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
  });
});

/** All NUMA nodes of a plan. */
function nodesOf({ topology }: Manager, { containers }: Plan): NodeSet {
  const cpus = containers.reduce(
    (all, each) => all.union(each.cpus ?? CpuSet.EMPTY).union(each.held),
    CpuSet.EMPTY,
  );
  const memory = containers.flatMap((each) => each.memory.flatMap(({ nodes }) => nodes));
  const devices = containers.flatMap((each) => Object.values(each.devices).flat());
  const near = NodeSet.from([...memory, ...devices.flatMap(({ nodes }) => nodes ?? [])]);
  return topology.nodesOf(cpus).union(near);
}

const GIB = 2 ** 30;

/** Nodes of one size, with memory, each a socket of cores of two threads. */
const regular: fc.Arbitrary<MachineJson> = fc
  .record({
    nodes: fc.integer({ min: 2, max: 4 }),
    cores: fc.integer({ min: 2, max: 4 }),
    gib: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ nodes, cores, gib }) => {
    const cpus = Array.from({ length: 2 * nodes * cores }, (_, cpu) => {
      const node = Math.floor(cpu / 2 / cores);
      return [cpu, cpu - (cpu % 2), node, node, node];
    });
    const described = Array.from({ length: nodes }, (_, id) => ({
      id,
      cpuLess: false,
      distances: null,
      memory: gib * GIB,
    }));
    return {
      columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
      cpus,
      nodes: described,
    } as unknown as MachineJson;
  });

const NIC = 'example.com/nic';

interface Amounts {
  readonly cpu: number;
  readonly gib: number;
  readonly nics: number;
}

const amountsOf = (least: number, most: number) => ({
  cpu: fc.integer({ min: least, max: most }),
  gib: fc.integer({ min: 1, max: 5 }),
  nics: fc.constantFrom(0, 0, 0, 1),
});
const initContainers = (most: number) => fc.record({ ...amountsOf(1, most), sidecar: fc.boolean() });
const podOf = (init: number, least: number, most: number) =>
  fc.record({
    init: fc.array(initContainers(init), { maxLength: 3 }),
    apps: fc.array(fc.record(amountsOf(least, most)), { minLength: 1, maxLength: 2 }),
  });
// The lookahead is for small containers before large ones.
const pods = fc.oneof(podOf(9, 1, 9), podOf(2, 3, 8));

const specOf = ({
  init,
  apps,
}: {
  readonly init: readonly (Amounts & { readonly sidecar: boolean })[];
  readonly apps: readonly Amounts[];
}) => {
  const spec = (name: string, { cpu, gib, nics }: Amounts) =>
    guaranteed(name, { cpu, memory: gib * 128 * 2 ** 20, [NIC]: nics });
  return {
    initContainers: init.map((each, i) => ({
      ...spec(`init-${i}`, each),
      ...(each.sidecar && { restartPolicy: 'Always' }),
    })),
    containers: apps.map((each, i) => spec(`app-${i}`, each)),
  };
};

const ALIGNED = ['best-effort', 'restricted', 'single-numa-node'] as const;
const placements = fc.record({
  policy: fc.constantFrom('none' as const, ...ALIGNED, ...ALIGNED),
  scope: fc.constantFrom(...(['container', 'container', 'container', 'pod'] as const)),
  cpuManagerPolicyOptions: fc.constantFrom(
    {},
    { 'full-pcpus-only': true },
    { 'distribute-cpus-across-numa': true },
  ),
});

describe('on any machine', () => {
  it('the lookahead admits whatever is admitted without it, on no more NUMA nodes in all', async () => {
    let [more, fewer] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ weight: 3, arbitrary: regular }, { weight: 1, arbitrary: irregularMachines }),
        fc.array(podOf(2, 1, 4), { maxLength: 3 }),
        pods,
        placements,
        async (json, others, asked, placement) => {
          const topology = await discover({ json });
          // One near each node but the first.
          const nics = topology.numaNodes.slice(1).map((node) => ({ id: `nic-${node}`, numaNodes: [node] }));
          const manager = await openManager({ topology, devices: { [NIC]: nics } });
          try {
            for (const other of others)
              await manager.admit(specOf(other), { owner: 'persistent' }).catch(() => {});
            const spec = specOf(asked);
            const without = manager.plan(spec, placement);
            const ahead = manager.plan(spec, { ...placement, initContainerLookahead: true });
            if (!without.admitted && ahead.admitted) more++;
            if (!without.admitted) return;
            expect(ahead.admitted).toBe(true);
            const sizes = [nodesOf(manager, ahead).size, nodesOf(manager, without).size] as const;
            expect(sizes[0]).toBeLessThanOrEqual(sizes[1]);
            if (sizes[0] < sizes[1]) fewer++;
            // A placement that cannot be better stays unchanged.
            else expect(ahead).toEqual(without);
          } finally {
            manager.close();
          }
        },
      ),
      { numRuns: budget({ all: 20_000, usual: 150 }) },
    );
    // Rare: a short run may meet none.
    if (!isLong) return;
    expect(more).toBeGreaterThan(0);
    expect(fewer).toBeGreaterThan(0);
  }, 600_000);
});
