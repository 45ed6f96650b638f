// Whole cores of different sizes: offline threads, hybrid machines. What full-pcpus-only and the
// strict policies promise holds there too.
import { describe, expect, it } from 'vitest';
import { discover, type MachineJson } from '../../lib/entries/topology.js';
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

  it('grow on their node if it adds up there', async () => {
    const manager = await managerOf(
      [
        [2, 2, 2],
        [2, 1, 2],
      ],
      { topologyManagerPolicy: 'restricted' },
    );
    const grant = await manager.acquire({ cpu: 2 });
    expect(String(grant.cpus)).toBe('0-1');
    await expect(grant.resize({ cpu: 3 })).rejects.toMatchObject({ code: 'ERR_TOPOLOGY_AFFINITY' });
    await grant.resize({ cpu: 4 });
    expect(String(grant.cpus)).toBe('0-3');
  });
});
