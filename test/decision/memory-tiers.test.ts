// needs: nothing
// Memory of nodes without CPUs: who gets it, in which order, and what rejections say.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import type { AcquireOptions, Grant, Manager, ManagerOptions } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf, type NodeSpec } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

// Two sockets, each with an HBM node and a CXL node beside it.
const DISTANCES = [
  [10, 20, 12, 32, 14, 34],
  [20, 10, 32, 12, 34, 14],
  [12, 32, 10, 42, 26, 46],
  [32, 12, 42, 10, 46, 26],
  [14, 34, 26, 46, 10, 48],
  [34, 14, 46, 26, 48, 10],
];
const NODES: readonly NodeSpec[] = [
  { cpus: 4, memory: 4 * GI },
  { cpus: 4, memory: 4 * GI },
  { cpus: 0, memory: 2 * GI, tier: 'hbm' },
  { cpus: 0, memory: 2 * GI, tier: 'hbm' },
  { cpus: 0, memory: 8 * GI, tier: 'cxl' },
  { cpus: 0, memory: 8 * GI },
];
const MACHINE = await machineOf(NODES.map((node, i) => ({ ...node, distances: DISTANCES[i]! })));

const managerOf = (options: ManagerOptions = {}) =>
  simulate(MACHINE, { policy: 'single-numa-node', ...options });

/** The blocks of a grant: `3 GiB on 0`; and the nodes of its CPUs. */
async function placed(manager: Manager, options: Partial<AcquireOptions>): Promise<string[]> {
  const { memory, cpus } = await manager.acquire({ cpu: 1, ...options });
  return [
    `CPUs on ${MACHINE.nodesOf(cpus)}`,
    ...memory.map(({ bytes, nodes }) => `${bytes / GI} on ${nodes}`),
  ];
}

describe('memory', () => {
  it('is that of nodes with CPUs by default, and no other', async () => {
    const manager = await managerOf({ policy: 'best-effort' });
    expect(await placed(manager, { memory: '6Gi' })).toEqual(['CPUs on 0', '6 on 0,1']);
    const error = await errorOf(() => manager.acquire({ cpu: 1, memory: '3Gi' }));
    expect(error.message).toContain('3 GiB requested; free by NUMA node: 0: 0 B of 4 GiB, 1: 2 GiB of 4 GiB');
    expect(error.message).toContain(
      'of tiers that it does not name (memoryTiers): 4 GiB of hbm on NUMA nodes 2-3, 8 GiB of cxl on NUMA node 4, 8 GiB of other on NUMA node 5',
    );
  });

  it('is of all nodes alike where the kubelet is followed', async () => {
    const manager = await managerOf({ policy: 'best-effort', memoryTiers: 'any' });
    expect(await placed(manager, { memory: '16Gi' })).toContain('16 on 0,1,4');
  });

  it('fills the first tier before the next, with the CPUs nearby', async () => {
    const manager = await managerOf();
    const hbm = { size: '1.5Gi', tier: ['hbm', 'dram'] } as const;
    expect(await placed(manager, { memory: hbm })).toEqual(['CPUs on 0', '1.5 on 2']);
    expect(await placed(manager, { memory: hbm })).toEqual(['CPUs on 1', '1.5 on 3']);
    expect(await placed(manager, { memory: hbm })).toEqual(['CPUs on 0', '0.5 on 2', '1 on 0']);
  });

  it('overflows from DRAM to CXL, and leaves DRAM to others', async () => {
    const manager = await managerOf();
    const memory = { size: '6Gi', tier: ['dram', 'cxl'] } as const;
    expect(await placed(manager, { memory: { ...memory, size: '3Gi' } })).toEqual(['CPUs on 0', '3 on 0']);
    expect(await placed(manager, { memory })).toEqual(['CPUs on 0', '1 on 0', '5 on 4']);
    expect(await placed(manager, { memory: '4Gi' })).toEqual(['CPUs on 1', '4 on 1']);
    const error = await errorOf(() => manager.acquire({ cpu: 1, memory }));
    expect(error.code).toBe('ERR_TOPOLOGY_AFFINITY');
  });

  it('fills DRAM of all nodes before it overflows, though grants on one node keep groups away', async () => {
    const manager = await managerOf({ policy: 'best-effort' });
    await manager.acquire({ cpu: 1, memory: '1Gi' });
    const memory = { size: '5Gi', tier: ['dram', 'cxl'] } as const;
    expect(await placed(manager, { memory })).toEqual(['CPUs on 0', '3 on 0', '2 on 1']);
  });

  it.each(['joint', 'kubelet'] as const)('of a tier is placed by %s placement', async (placement) => {
    const manager = await managerOf({ placement });
    expect(await placed(manager, { memory: { size: '2Gi', tier: 'cxl' } })).toEqual(['CPUs on 0', '2 on 4']);
    expect(await placed(manager, { memory: { size: '2Gi', tier: 'other' } })).toEqual([
      'CPUs on 1',
      '2 on 5',
    ]);
  });

  it('has its tiers after a resize', async () => {
    const manager = await managerOf();
    const grant = await manager.acquire({ cpu: 1, memory: { size: '1Gi', tier: ['hbm', 'dram'] } });
    await grant.resize({ memory: '5Gi' });
    expect(grant.memory.map(({ bytes, nodes }) => `${bytes / GI} on ${nodes}`)).toEqual(['2 on 2', '3 on 0']);
    await grant.resize({ memory: '1.5Gi' });
    expect(grant.memory.map(({ bytes, nodes }) => `${bytes / GI} on ${nodes}`)).toEqual(['1.5 on 2']);
    await grant.release();
    expect(manager.memory().every(({ reserved }) => reserved === 0)).toBe(true);
  });

  it('of several containers is each filled by tier, and what init containers leave is used again', async () => {
    const manager = await managerOf();
    const { containers } = await manager.admit(
      {
        initContainers: [guaranteed('init', { cpu: 1, memory: '3Gi' })],
        containers: [
          guaranteed('main', { cpu: 1, memory: '2Gi' }),
          guaranteed('more', { cpu: 1, memory: '1Gi' }),
        ],
      },
      { memoryTiers: ['hbm', 'dram'] },
    );
    expect(
      containers.map(({ memory }) => memory.map(({ bytes, nodes }) => `${bytes / GI} on ${nodes}`)),
    ).toEqual([['0 on 2', '0 on 0'], ['2 on 2'], ['1 on 0']]);
  });

  it.each([
    [{ memoryTiers: 'ddr' }, 'memoryTiers'],
    [{ memoryTiers: ['hbm', 'hbm'] }, 'memoryTiers'],
    [{ memoryTiers: [] }, 'memoryTiers'],
    [{ memory: { size: '1Gi' } }, 'memory.tier'],
    [{ memory: { tier: 'hbm' } }, 'memory.size'],
    [{ memory: { size: '1Gi', tier: 'hbm' }, memoryTiers: 'hbm' }, 'memoryTiers'],
  ])('refuses %j', async (options, name) => {
    const manager = await managerOf();
    const error = await errorOf(() => manager.acquire({ cpu: 1, ...(options as object) }));
    expect([error.code, error.details.option]).toEqual(['ERR_INVALID_OPTION', name]);
  });

  it('of a tier that the machine lacks is a rejection that says which it has', async () => {
    const manager = await managerOf();
    const error = await errorOf(() => manager.acquire({ cpu: 1, memory: { size: '1Gi', tier: 'pmem' } }));
    expect(error.message).toContain('no NUMA node has any');
    expect(error.message).toContain('4 GiB of hbm on NUMA nodes 2-3');
  });
});

describe('the description of a machine', () => {
  it('has tiers, which are read back; others stay as they were', async () => {
    const json = MACHINE.toJSON();
    expect(json.nodes.map(({ tier }) => tier)).toEqual([undefined, undefined, 'hbm', 'hbm', 'cxl', 'other']);
    expect(json.memoryByTier).toEqual({ dram: 8 * GI, hbm: 4 * GI, cxl: 8 * GI, other: 8 * GI });
    expect((await discover({ json })).toJSON()).toEqual(json);
    const ordinary = (await machineOf([{ cpus: 2, memory: GI }])).toJSON();
    expect(Object.keys(ordinary)).not.toContain('memoryByTier');
    expect(Object.keys(ordinary.nodes[0]!)).not.toContain('tier');
  });

  it('is refused with another tier', async () => {
    const json = { ...MACHINE.toJSON(), nodes: [{ id: 0, tier: 'ram' }] };
    const error = await errorOf(() => discover({ json }));
    expect([error.code, error.message]).toEqual([
      'ERR_INVALID_TOPOLOGY',
      "not a JSON machine: nodes[0].tier must be one of dram, hbm, cxl, pmem, gpu, other, not 'ram'",
    ]);
  });
});

describe('whatever is asked for', () => {
  const tierOf = (node: number) => MACHINE.nodes[node]!.tier;
  const TIERS = [
    undefined,
    ['dram', 'cxl'],
    ['hbm', 'dram'],
    ['hbm', 'cxl'],
    ['other'],
    ['cxl', 'dram'],
  ] as const;
  const request = fc.record({
    size: fc.integer({ min: 1, max: 7 }),
    tiers: fc.constantFrom(...TIERS),
    policy: fc.constantFrom('best-effort', 'restricted', 'single-numa-node'),
    placement: fc.constantFrom('kubelet', 'joint'),
  });

  it('memory is of the tiers that are named, in their order, and none is booked twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 2, maxLength: 8 }), async (requests) => {
        const manager = await simulate(MACHINE, {});
        const grants: Grant[] = [];
        for (const { size, tiers, ...options } of requests) {
          const before = manager.memory();
          const freeOf = (node: number) => before.find((table) => table.node === node)!.free;
          const memory = tiers ? { size: size * GI, tier: tiers } : size * GI;
          const grant = await manager
            .acquire({ cpu: 1, memory, ...options } as AcquireOptions)
            .catch(() => {});
          if (!grant) continue;
          grants.push(grant);
          const order: readonly string[] = tiers ?? ['dram'];
          const ranks = grant.memory.map(({ nodes }) => order.indexOf(tierOf(nodes[0]!)));
          expect(ranks).toEqual([...ranks].sort());
          expect(ranks).not.toContain(-1);
          expect(grant.memory.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(size * GI);
          // All of a tier that was used before the last is full on the nodes that have some of it.
          for (const [i, { nodes, bytes }] of grant.memory.entries())
            if (ranks[i]! < ranks.at(-1)!) expect(bytes).toBe(freeOf(nodes[0]!));
        }
        const tables = manager.memory();
        const booked = grants.flatMap(({ memory }) => memory).reduce((sum, { bytes }) => sum + bytes, 0);
        expect(tables.reduce((sum, { reserved }) => sum + reserved, 0)).toBe(booked);
        for (const { reserved, allocatable } of tables) expect(reserved).toBeLessThanOrEqual(allocatable);
        for (const grant of grants) await grant.release();
        expect(manager.memory().every(({ reserved }) => reserved === 0)).toBe(true);
      }),
      { numRuns: budget({ all: 1000, usual: 20 }) },
    );
  });
});

describe('a machine with many nodes of GPU memory', () => {
  const nodes = Array.from({ length: 34 }, (_, id) => ({
    id,
    cpuLess: id > 1,
    distances: null,
    memory: id < 2 ? 480 * GI : id % 8 === 2 ? 184 * GI : 0,
  }));
  const json = {
    columns: ['cpu', 'core', 'socket', 'numa'],
    cpus: [0, 1, 2, 3].map((cpu) => [cpu, cpu, cpu >> 1, cpu >> 1]),
    nodes,
  };

  it('books none of it for host memory, and a rejection names only nodes that matter', async () => {
    const manager = await simulate(await discover({ json }), { policy: 'best-effort' });
    const pod = { containers: [guaranteed('main', { cpu: 1, memory: '1300Gi' })] };
    const { admitted, explanation } = manager.plan(pod) as never as {
      admitted: boolean;
      explanation: { text: string };
    };
    expect(admitted).toBe(false);
    expect(explanation.text).toContain('free by NUMA node: 0: 480 GiB of 480 GiB, 1: 480 GiB of 480 GiB\n');
    expect(explanation.text).not.toContain('0 B of 0 B');
  });
});
