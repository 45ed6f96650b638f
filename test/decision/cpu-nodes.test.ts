// needs: nothing
// restrict-to-cpu-numa-nodes: decisions as on a machine without the NUMA nodes that have no CPUs.
import { describe, expect, it } from 'vitest';
import type { ManagerOptions } from '../../lib/index.js';
import { openManager } from '../../lib/index.js';
import { NodeSet } from '../../lib/machine/cpu-set.js';
import { errorOf } from '../support/error-of.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

// Two nodes with CPUs, and beside each of them two without.
const DISTANCES = [
  [10, 40, 80, 80, 90, 90],
  [40, 10, 90, 90, 80, 80],
  [80, 90, 10, 255, 255, 255],
  [80, 90, 255, 10, 255, 255],
  [90, 80, 255, 255, 10, 255],
  [90, 80, 255, 255, 255, 10],
];
const MACHINE = await machineOf(
  DISTANCES.map((distances, i) => ({ cpus: i < 2 ? 8 : 0, memory: 4 * GI, distances })),
);
const RESTRICTED = { 'restrict-to-cpu-numa-nodes': true } as const;

const managerOf = (isRestricted: boolean, options: ManagerOptions = {}) =>
  simulate(MACHINE, {
    policy: 'best-effort',
    memoryTiers: 'any',
    ...options,
    topologyManagerPolicyOptions: { 'restrict-to-cpu-numa-nodes': isRestricted },
  });

/** The memory of a grant as `8 on 0,1`, or the code of its rejection. */
async function memoryOf(isRestricted: boolean, memory: string, options?: ManagerOptions): Promise<unknown> {
  const manager = await managerOf(isRestricted, options);
  try {
    const grant = await manager.acquire({ cpu: 1, memory });
    return grant.memory.map(({ bytes, nodes }) => `${bytes / GI} on ${nodes}`);
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe('restrict-to-cpu-numa-nodes', () => {
  it.each([
    ['best-effort', '8Gi', ['8 on 0,1'], ['8 on 0,1']],
    ['best-effort', '12Gi', ['12 on 0,1,2'], 'ERR_INSUFFICIENT_MEMORY'],
  ] as const)('leaves out the memory of other nodes under %s: %s', async (policy, memory, all, only) => {
    expect(await memoryOf(false, memory, { policy })).toEqual(all);
    expect(await memoryOf(true, memory, { policy })).toEqual(only);
  });

  it.each(['kubelet', 'joint'] as const)(
    'leaves out tiers of other nodes by %s placement',
    async (placement) => {
      const tiers = { placement, memoryTiers: ['other', 'dram'] } as const;
      expect(await memoryOf(false, '6Gi', tiers)).toEqual(['4 on 2', '2 on 3']);
      expect(await memoryOf(true, '6Gi', tiers)).toEqual(['6 on 0,1']);
    },
  );

  it.each([
    [false, '0-5'],
    [true, '0-1'],
  ])('has hints of nodes with CPUs only: %s', async (isRestricted, nodes) => {
    const manager = await managerOf(isRestricted, { policy: 'single-numa-node' });
    const plan = manager.plan({ containers: [guaranteed('app', { cpu: 10 })] });
    const offered = plan.hints[0]!.offered.find(({ resource }) => resource === 'memory')!;
    const named = offered.hints.first(100).map((hint) => hint.nodes!);
    expect(String(named.reduce((all, each) => all.union(each), NodeSet.EMPTY))).toBe(nodes);
  });

  it.each([
    [false, '0-5'],
    [true, '0-1'],
  ])('has only these in the hint of a request without preference: %s', async (isRestricted, nodes) => {
    const manager = await managerOf(isRestricted, { memoryManagerPolicy: 'None' });
    const { containers } = manager.plan({ containers: [guaranteed('app', { cpu: '500m' })] });
    expect(containers.map(({ hint }) => String(hint.nodes))).toEqual([nodes]);
  });

  it('counts a device as near the nearest node with CPUs', async () => {
    const gpus = [2, 3, 4, 5].map((node) => ({ id: `gpu${node}`, numaNodes: [node] }));
    const manager = await managerOf(true, {
      policy: 'single-numa-node',
      devices: { 'example.com/gpu': gpus },
    });
    const admitted = async (uid: string) => {
      const resources = { cpu: 2, memory: '1Gi', 'example.com/gpu': 2 };
      const { containers } = await manager.admit({ uid, containers: [guaranteed('app', resources)] });
      const { cpus, devices } = containers[0]!;
      return [String(MACHINE.nodesOf(cpus!)), devices['example.com/gpu']];
    };
    const near = (nodes: number[], ...ids: string[]) => ids.map((id) => ({ id, nodes }));
    expect(await admitted('a')).toEqual(['0', near([0], 'gpu2', 'gpu3')]);
    expect(await admitted('b')).toEqual(['1', near([1], 'gpu4', 'gpu5')]);
  });

  it('is refused where a machine has too many nodes with CPUs, and counts no others', async () => {
    const nodes = (cpus: (i: number) => number) =>
      machineOf(Array.from({ length: 9 }, (_, i) => ({ cpus: cpus(i), memory: GI })));
    const limited = { ...RESTRICTED, 'max-allowable-numa-nodes': 8 };
    const open = async (cpus: (i: number) => number) =>
      openManager({
        topology: await nodes(cpus),
        stateDir: makeStateDir(),
        topologyManagerPolicyOptions: limited,
      });
    (await open((i) => (i < 2 ? 1 : 0))).close();
    expect(await errorOf(() => open(() => 1))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { valid: "'none': this machine has 9 NUMA nodes with CPUs, more than 8" },
    });
  });

  it('is on record with a grant, which keeps it when it grows', async () => {
    const stateDir = makeStateDir();
    const manager = await managerOf(false, { stateDir });
    const grant = await manager.acquire({ cpu: 1, memory: '1Gi', topologyManagerPolicyOptions: RESTRICTED });
    await manager.acquire({ cpu: 1 });
    const name = 'restrict-to-cpu-numa-nodes';
    expect(
      membersOf(stateDir).pods.map((pod: { options: object }) => Reflect.get(pod.options, name)),
    ).toEqual([true, undefined]);
    expect(await errorOf(() => grant.resize({ memory: '12Gi' }))).toMatchObject({
      code: 'ERR_INSUFFICIENT_MEMORY',
    });
    await grant.resize({ memory: '8Gi' });
    expect(grant.memory.map(({ nodes }) => String(nodes))).toEqual(['0,1']);
  });
});
