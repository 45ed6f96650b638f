// needs: nothing
// Whole cores of different sizes: offline threads, hybrid machines. What full-pcpus-only and the
// strict policies promise holds there too.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover, type MachineJson, type Topology } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, openManager, type Plan } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { guaranteed, simulate } from '../support/simulated.js';

const WHOLE = { 'full-pcpus-only': true } as const;

/** By node: the number of threads of each core. Two nodes a socket. */
function machineOf(nodes: readonly (readonly number[])[]): MachineJson {
  let next = 0;
  const cpus = nodes.flatMap((cores, node) =>
    cores.flatMap((threads) => {
      const core = next;
      return Array.from({ length: threads }, () => [next++, core, node >> 1, node, node]);
    }),
  );
  return {
    columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
    cpus,
    nodes: nodes.map((cores, id) => ({ id, cpuLess: cores.length === 0, distances: null, memory: 2 ** 30 })),
  } as unknown as MachineJson;
}

const managerOf = async (nodes: readonly (readonly number[])[], options = {}) =>
  simulate(await discover({ json: machineOf(nodes) }), { cpuManagerPolicyOptions: WHOLE, ...options });

const podOf = (...counts: readonly number[]) => ({
  containers: counts.map((cpu, i) => guaranteed(`app-${i}`, { cpu })),
});

describe('whole cores of different sizes', () => {
  it.each(['single-numa-node', 'restricted'] as const)(
    'are on one NUMA node that has them, under %s',
    async (policy) => {
      const manager = await managerOf([
        [2, 2, 2, 2],
        [2, 2, 2, 1],
      ]);
      for (const cpu of [3, 5, 7]) {
        const plan = manager.plan(podOf(cpu), { policy });
        expect([cpu, String(manager.topology.nodesOf(plan.containers[0]!.cpus!))]).toEqual([cpu, '1']);
      }
    },
  );

  it('are rejected under single-numa-node where only several nodes add up', async () => {
    const manager = await managerOf([[2, 2], [1]]);
    const plan = manager.plan(podOf(3), { policy: 'single-numa-node' });
    expect([plan.admitted, plan.reason]).toEqual([false, 'TopologyAffinityError']);
  });

  // Half of node 0's second core would do, if cores could be split.
  it('are explained by the nodes that add up', async () => {
    const manager = await managerOf([[2, 2], [1]], { memoryManagerPolicy: 'None' });
    const { containers, choice } = manager.plan(podOf(3), { placement: 'joint' });
    expect(String(containers[0]!.cpus)).toBe('0-1,4');
    expect(containers[0]!.hint.preferred).toBe(true);
    expect(choice).toBe('app-0: NUMA nodes 0-1: the only set of 2 nodes that has all of it');
  });

  it('may be any number that cores add up to, not only a multiple of their average', async () => {
    const manager = await managerOf([[4, 4, 4, 3]]);
    expect(manager.plan(podOf(8)).admitted).toBe(true);
    expect(manager.plan(podOf(7)).admitted).toBe(true);
    expect(manager.plan(podOf(6)).code).toBe('ERR_SMT_ALIGNMENT');
  });

  it('count in the largest request of a node, which no lower number need be', async () => {
    const manager = await managerOf([[4, 3], [2]], { reservedSystemCPUs: '7-8' });
    const { nodes } = await manager.defragment({ dryRun: true });
    expect(nodes).toEqual([
      { node: 0, before: 7, after: 7 },
      { node: 1, before: 0, after: 0 },
    ]);
  });

  it('grow on their node if it adds up there', async () => {
    const manager = await managerOf(
      [
        [2, 2, 2],
        [2, 1, 2],
      ],
      { policy: 'restricted' },
    );
    const grant = await manager.acquire({ cpu: 2 });
    expect(String(grant.cpus)).toBe('0-1');
    await expect(grant.resize({ cpu: 3 })).rejects.toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    await grant.resize({ cpu: 4 });
    expect(String(grant.cpus)).toBe('0-3');
  });
});

const cores = fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 5 });
// SMT 1 to 8, with some threads offline or some cores of another kind.
const nodesOfCores = fc
  .tuple(fc.constantFrom(1, 2, 2, 2, 4, 8), fc.array(cores, { minLength: 1, maxLength: 4 }))
  .map(([smt, nodes]) => nodes.map((sizes) => sizes.map((size) => Math.min(size, smt))))
  .filter((nodes) => nodes.flat().reduce((sum, size) => sum + size, 0) >= 2);
const cpuOptions = fc.record({
  'full-pcpus-only': fc.constantFrom(true, true, false),
  'distribute-cpus-across-numa': fc.boolean(),
  'align-by-socket': fc.boolean(),
  'prefer-align-cpus-by-uncorecache': fc.boolean(),
  'distribute-cpus-across-cores': fc.boolean(),
});

/** What a request for whole cores, or for single CPUs, can have of these CPUs. */
function amountsOf({ cores: all }: Topology, cpus: CpuSet, isWhole: boolean): ReadonlySet<number> {
  if (!isWhole) return new Set(Array.from({ length: cpus.size }, (_, i) => i + 1));
  let sums = new Set([0]);
  for (const { cpus: core } of all)
    if (core.isSubsetOf(cpus)) sums = new Set([...sums, ...[...sums].map((sum) => sum + core.size)]);
  return sums;
}

const subsetsOf = (nodes: readonly number[]) =>
  nodes.reduce<number[][]>((sets, node) => sets.concat(sets.map((set) => [...set, node])), [[]]);

describe('on any machine', () => {
  it('a strict policy keeps CPUs on the nodes of the hint, the fewest that could ever have them, and rejects nothing that one node has', async () => {
    let [strict, rejected] = [0, 0];
    await fc.assert(
      fc.asyncProperty(
        nodesOfCores,
        fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 }),
        cpuOptions,
        fc.record({
          policy: fc.constantFrom('best-effort', 'restricted', 'restricted', 'single-numa-node'),
          scope: fc.constantFrom('container', 'pod'),
          placement: fc.constantFrom('kubelet', 'joint'),
        } as const),
        async (nodes, others, counts, options, placement) => {
          const topology = await discover({ json: machineOf(nodes) });
          const manager = await openManager({ topology, memoryManagerPolicy: 'None' });
          try {
            for (const cpu of others) await manager.acquire({ cpu, owner: 'persistent' }).catch(() => {});
            const asked = { ...placement, cpuManagerPolicyOptions: options };
            const plan = planOf(manager, podOf(...counts), asked);
            if (!plan) return;
            const isWhole = options['full-pcpus-only'];
            const cpusOf = (set: readonly number[]) =>
              topology.nodes
                .filter(({ id }) => set.includes(id))
                .reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
            const has = (cpus: CpuSet, count: number) => amountsOf(topology, cpus, isWhole).has(count);
            const total = counts.reduce((sum, count) => sum + count, 0);
            if (!plan.admitted) {
              rejected++;
              const free = manager.sharedPool();
              // The last CPU stays shared.
              if (counts.length > 1 || free.size <= total) return;
              const hasAll = (id: number) => has(cpusOf([id]).intersection(free), total);
              expect(topology.numaNodes.find(hasAll)).toBeUndefined();
              return;
            }
            const isStrict = placement.policy !== 'best-effort';
            const ever = (count: number) =>
              Math.min(
                ...subsetsOf(topology.numaNodes)
                  .filter((set) => has(cpusOf(set), count))
                  .map((set) => set.length),
              );
            for (const [i, { cpus, hint }] of plan.containers.entries()) {
              // Of one node, single-numa-node makes any.
              if (topology.numaNodes.length === 1) continue;
              expect(cpus!.size).toBe(counts[i]);
              if (isWhole) expect(topology.wholeCores(cpus!)).toEqual(cpus);
              const inside = cpusOf([...hint.nodes!]);
              const fewest = ever(placement.scope === 'pod' ? total : counts[i]!);
              const isAligned = options['align-by-socket'];
              if (!isAligned) expect(hint.preferred).toBe(hint.nodes!.size === fewest);
              if (!isStrict || isAligned) continue;
              strict++;
              expect(cpus!.isSubsetOf(inside)).toBe(true);
              expect(hint.nodes!.size).toBe(placement.policy === 'single-numa-node' ? 1 : fewest);
            }
          } finally {
            manager.close();
          }
        },
      ),
      { numRuns: budget(20_000, 400) },
    );
    expect([strict > 0, rejected > 0]).toEqual([true, true]);
  }, 600_000);
});

// Some options exclude each other.
function planOf(manager: Manager, spec: ReturnType<typeof podOf>, options: object): Plan | undefined {
  try {
    return manager.plan(spec, options);
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    return undefined;
  }
}
