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

  it('never include a core of which a CPU is reserved, as a rejection says', async () => {
    const manager = await managerOf([[2, 2], [2]], { reservedSystemCPUs: '0' });
    const { explanation } = manager.plan(podOf(6));
    expect(explanation!.text).toContain('cpu: 6 requested; at most 4 can ever be granted; ');
  });

  it('are on the node that has them for each container of a pod, not only for their sum', async () => {
    const manager = await managerOf([
      [7, 8],
      [1, 1, 8, 5],
    ]);
    for (const policy of ['single-numa-node', 'restricted', 'best-effort'] as const) {
      const { containers } = manager.plan(podOf(1, 6, 8), { policy, scope: 'pod' });
      const nodes = containers.map(({ cpus }) => String(manager.topology.nodesOf(cpus!)));
      expect([policy, ...nodes]).toEqual([policy, '1', '1', '1']);
    }
  });

  it('leave what the next containers need on the node', async () => {
    const manager = await managerOf([[5, 1, 1, 8, 6], [2]]);
    for (const scope of ['container', 'pod'] as const) {
      const plan = manager.plan(podOf(6, 5, 2), { policy: 'single-numa-node', scope });
      expect([scope, plan.admitted]).toEqual([scope, true]);
    }
  });

  it.each([
    [
      [3, 1, 1],
      [7, 6, 8],
      [6, 1],
    ],
    [
      [2, 4, 4],
      [5, 8, 7, 5, 8],
      [15, 11],
    ],
    [[2], [2, 5, 6, 7, 8], [8, 13]],
  ])('%j, %j of a pod with resources as a whole add up to %j for its containers', async (...rows) => {
    const [first, second, counts] = rows as [number[], number[], number[]];
    const nodes = [first, second, [2, 2]];
    const manager = await managerOf(nodes, { featureGates: { PodLevelResourceManagers: true } });
    const limits = { cpu: counts[0]! + counts[1]!, memory: '1Gi' };
    const pod = { ...podOf(...counts), resources: { requests: limits, limits } };
    const { containers } = manager.plan(pod, { policy: 'best-effort', scope: 'pod' });
    expect(containers.map(({ cpus }) => cpus!.size)).toEqual(counts);
  });

  it('are on the fewest of more NUMA nodes than are enumerated, under restricted', async () => {
    const nodes = Array.from({ length: 20 }, () => [2, 2, 2, 3, 3, 3]);
    const manager = await managerOf(nodes, { memoryManagerPolicy: 'None' });
    const [container] = manager.plan(podOf(41), { policy: 'restricted' }).containers;
    expect(String(container!.hint.nodes)).toBe('0-2');
    expect(String(manager.topology.nodesOf(container!.cpus!))).toBe('0-2');
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

type Kind = 'init' | 'sidecar' | 'app';
interface Claim {
  readonly kind: Kind;
  readonly count: number;
}
const claimsOf = fc
  .array(
    fc.record({ kind: fc.constantFrom<Kind>('init', 'sidecar'), count: fc.integer({ min: 1, max: 9 }) }),
    {
      maxLength: 2,
    },
  )
  .chain((first) =>
    fc
      .array(fc.record({ kind: fc.constant<Kind>('app'), count: fc.integer({ min: 1, max: 9 }) }), {
        minLength: 1,
        maxLength: 3,
      })
      .map((apps): Claim[] => [...(first.length === 2 && apps.length > 1 ? first : []), ...apps]),
  );

/** What groups of the cores of one node add up to, or any claims. */
const machinesAndClaims = nodesOfCores.chain((nodes) =>
  fc.tuple(
    fc.constant(nodes),
    fc.oneof(
      claimsOf,
      fc
        .tuple(fc.nat(nodes.length - 1), fc.array(fc.nat(2), { minLength: 5, maxLength: 5 }))
        .map(([node, groups]) =>
          [0, 1, 2].map((group): Claim => {
            const cores = nodes[node]!.filter((_, i) => groups[i] === group);
            return { kind: 'app', count: cores.reduce((sum, size) => sum + size, 0) };
          }),
        )
        .map((claims) => claims.filter(({ count }) => count > 0))
        .filter((claims) => claims.length > 0),
    ),
  ),
);

const specOf = (claims: readonly Claim[]) => {
  const of = (isInit: boolean) =>
    claims.flatMap(({ kind, count }, i) =>
      (kind !== 'app') === isInit
        ? [
            {
              ...guaranteed(`c-${i}`, { cpu: count }),
              ...(kind === 'sidecar' && { restartPolicy: 'Always' }),
            },
          ]
        : [],
    );
  return { initContainers: of(true), containers: of(false) };
};

/** The cores, or the CPUs if cores may be split, that are in `cpus`. */
const unitsOf = ({ cores: all }: Topology, cpus: CpuSet, isWhole: boolean): number[] =>
  isWhole
    ? all.filter((core) => core.cpus.isSubsetOf(cpus)).map((core) => core.cpus.size)
    : Array.from({ length: cpus.size }, () => 1);

/** Tries every way to deal units out to the containers in turn. */
function canServe(units: readonly number[], claims: readonly Claim[]): boolean {
  const [first, ...rest] = claims;
  if (!first) return true;
  const counts = new Map<number, number>();
  for (const unit of units) counts.set(unit, (counts.get(unit) ?? 0) + 1);
  const choose = (sizes: readonly number[], left: number, taken: ReadonlyMap<number, number>): boolean => {
    if (left === 0) {
      if (first.kind === 'init') return canServe(units, rest);
      const used = new Map(taken);
      const others = units.filter((unit) => {
        const n = used.get(unit) ?? 0;
        if (n > 0) used.set(unit, n - 1);
        return n === 0;
      });
      return canServe(others, rest);
    }
    const [size, ...smaller] = sizes;
    if (size === undefined) return false;
    for (let n = Math.min(counts.get(size)!, Math.floor(left / size)); n >= 0; n--)
      if (choose(smaller, left - n * size, new Map([...taken, [size, n]]))) return true;
    return false;
  };
  return choose([...counts.keys()], first.count, new Map());
}

const subsetsOf = (nodes: readonly number[]) =>
  nodes.reduce<number[][]>((sets, node) => sets.concat(sets.map((set) => [...set, node])), [[]]);

const cpusOf = ({ nodes }: Topology, set: readonly number[]) =>
  nodes.filter(({ id }) => set.includes(id)).reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);

/** The fewest NUMA nodes of which these CPUs serve the claims. */
const fewestOf = (topology: Topology, among: CpuSet, isWhole: boolean, claims: readonly Claim[]) =>
  Math.min(
    ...subsetsOf(topology.numaNodes)
      .filter((set) =>
        canServe(unitsOf(topology, cpusOf(topology, set).intersection(among), isWhole), claims),
      )
      .map((set) => set.length),
  );

const ONLY = /^(.*): NUMA nodes? (\S+): the only (?:node|set of \d+ nodes) that has all of it$/;

describe('on any machine', () => {
  it('a strict policy keeps CPUs on the nodes of the hint, the fewest that could ever have them, and rejects nothing that one node has', async () => {
    const seen = { strict: 0, rejected: 0, several: 0, aligned: 0, only: 0 };
    await fc.assert(
      fc.asyncProperty(
        machinesAndClaims,
        fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 }),
        cpuOptions,
        fc.record({
          policy: fc.constantFrom('best-effort', 'restricted', 'restricted', 'single-numa-node'),
          scope: fc.constantFrom('container', 'pod'),
          placement: fc.constantFrom('kubelet', 'joint'),
        } as const),
        fc.constantFrom('None', 'Static'),
        async ([nodes, claims], others, options, placement, memory) => {
          const topology = await discover({ json: machineOf(nodes) });
          const manager = await openManager({ topology, memoryManagerPolicy: memory });
          try {
            for (const cpu of others)
              await manager
                .acquire({ cpu, memory: '64Mi', owner: 'persistent', policy: 'single-numa-node' })
                .catch(() => {});
            const free = manager.sharedPool();
            const plan = planOf(manager, specOf(claims), {
              ...placement,
              cpuManagerPolicyOptions: options,
            });
            if (!plan) return;
            const isWhole = options['full-pcpus-only'];
            const isPod = placement.scope === 'pod';
            const isStrict = placement.policy !== 'best-effort';
            const isAligned = options['align-by-socket'];
            const hasInit = claims[0]!.kind !== 'app';
            const serves = (set: readonly number[]) =>
              canServe(unitsOf(topology, cpusOf(topology, set).intersection(free), isWhole), claims);
            if (!plan.admitted) {
              seen.rejected++;
              const most = /at most (\d+) can ever be granted/.exec(plan.explanation!.text);
              if (most) expect(Number(most[1])).toBe(mostEver(topology, isWhole));
              // Like the kubelet, a container stays on the nodes of the init containers before it, and
              // need not use their CPUs. The last CPU stays shared.
              const total = claims.reduce((sum, { count }) => sum + count, 0);
              if ((!isPod && hasInit) || free.size <= total) return;
              expect(topology.numaNodes.filter((id) => serves([id]))).toEqual([]);
              return;
            }
            if (claims.length > 1) seen.several++;
            const [, container, only] = ONLY.exec(plan.choice ?? '') ?? [];
            if (only && container === 'the pod' && memory === 'None') {
              seen.only++;
              const size = CpuSet.parse(only).size;
              const sets = subsetsOf(topology.numaNodes).filter((set) => set.length === size && serves(set));
              expect(sets.map((set) => set.join())).toEqual([[...CpuSet.parse(only)].join()]);
            }
            for (const [i, { cpus, hint }] of plan.containers.entries()) {
              // Of one node, single-numa-node makes any.
              if (topology.numaNodes.length === 1) continue;
              const claim = claims[i]!;
              expect(cpus!.size).toBe(claim.count);
              if (isWhole) expect(topology.wholeCores(cpus!)).toEqual(cpus);
              const fewest = fewestOf(topology, topology.cpus, isWhole, isPod ? claims : [claim]);
              if (!isAligned && memory === 'None') expect(hint.preferred).toBe(hint.nodes!.size === fewest);
              if (!isStrict) continue;
              seen.strict++;
              const inside = cpusOf(topology, [...hint.nodes!]);
              if (isAligned) {
                seen.aligned++;
                const sockets = topology.packages.filter((socket) => socket.cpus.intersects(inside));
                const near = sockets.reduce((all, socket) => all.union(socket.cpus), CpuSet.EMPTY);
                expect(cpus!.isSubsetOf(near)).toBe(true);
                continue;
              }
              expect(cpus!.isSubsetOf(inside)).toBe(true);
              expect(hint.nodes!.size).toBe(placement.policy === 'single-numa-node' ? 1 : fewest);
            }
          } finally {
            manager.close();
          }
        },
      ),
      { numRuns: budget({ all: 30_000, usual: 800 }) },
    );
    expect(Object.entries(seen).filter(([, n]) => n === 0)).toEqual([]);
  }, 1_800_000);

  it('a grant grows on its nodes where these have the cores', async () => {
    let grown = 0;
    await fc.assert(
      fc.asyncProperty(
        nodesOfCores,
        fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 3 }),
        fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 12 })),
        fc.record({
          'full-pcpus-only': fc.constantFrom(true, true, false),
          'prefer-align-cpus-by-uncorecache': fc.boolean(),
        }),
        fc.constantFrom('restricted', 'single-numa-node'),
        fc.constantFrom('kubelet', 'joint'),
        async (nodes, others, [before, after], options, policy, placement) => {
          const topology = await discover({ json: machineOf(nodes) });
          const manager = await openManager({ topology, memoryManagerPolicy: 'None' });
          try {
            for (const cpu of others)
              await manager.acquire({ cpu, owner: 'persistent', policy }).catch(() => {});
            const asked = { cpu: before, policy, placement, cpuManagerPolicyOptions: options } as const;
            const grant = await manager.acquire(asked).catch(() => undefined);
            if (!grant || topology.numaNodes.length === 1) return;
            const isWhole = options['full-pcpus-only'];
            const had = grant.cpus;
            const free = manager.sharedPool();
            const home = [...topology.nodesOf(had)];
            const failed = await grant.resize({ cpu: after }).then(
              () => undefined,
              (error: unknown) => error,
            );
            const missing = after - had.size;
            if (failed) {
              expect(grant.cpus).toEqual(had);
              const near = cpusOf(topology, home).intersection(free);
              const claims: Claim[] = [{ kind: 'app', count: missing }];
              if (missing < 1 || free.size <= missing || home.length > 1) return;
              expect(canServe(unitsOf(topology, near, isWhole), claims)).toBe(false);
              return;
            }
            grown++;
            expect(grant.cpus.size).toBe(after);
            expect(missing >= 0 ? had.isSubsetOf(grant.cpus) : grant.cpus.isSubsetOf(had)).toBe(true);
            if (isWhole) expect(topology.wholeCores(grant.cpus)).toEqual(grant.cpus);
            if (policy === 'single-numa-node') expect(topology.nodesOf(grant.cpus).size).toBe(1);
          } finally {
            manager.close();
          }
        },
      ),
      { numRuns: budget({ all: 10_000, usual: 100 }) },
    );
    expect(grown).toBeGreaterThan(0);
  }, 1_800_000);
});

/** How many CPUs the empty machine can grant. One CPU, or core, stays shared. */
const mostEver = ({ cores: all, cpus }: Topology, isWhole: boolean) =>
  cpus.size - (isWhole ? Math.min(...all.map((core) => core.cpus.size)) : 1);

// Some options exclude each other.
function planOf(manager: Manager, spec: ReturnType<typeof specOf>, options: object): Plan | undefined {
  try {
    return manager.plan(spec, options);
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    return undefined;
  }
}
