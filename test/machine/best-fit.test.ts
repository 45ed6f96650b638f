// needs: nothing
// A choice of CPUs without a grant: among available ones, near required ones.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BestFitOptions, discover, mergeHints, type Topology } from '../../lib/entries/topology.js';
import { AdmissionError, CpuSet, type Manager, NodeSet, openManager } from '../../lib/index.js';
import { thrownBy } from '../support/error-of.js';
import { irregularMachines } from '../support/random-machine.js';
import { guaranteed } from '../support/simulated.js';

const machine = () => discover({ synthetic: 'package:2 [numa(memory=8GiB)] core:4 pu:2' });

const bits = fc.infiniteStream(fc.boolean());

/** Some of these CPUs. */
const some = (cpus: CpuSet, choice: Iterator<boolean>) =>
  CpuSet.from([...cpus].filter(() => choice.next().value));

describe('a choice of CPUs', () => {
  it('is near the required ones, wherever else there is room', async () => {
    const topology = await machine();
    const choose = (count: number, options: BestFitOptions) =>
      String(topology.bestFit('0-15', count, options));
    expect(choose(4, {})).toBe('0-3');
    expect(choose(4, { mustInclude: '8-9' })).toBe('8-11');
    // The rest of a core first.
    expect(choose(2, { mustInclude: '13' })).toBe('12-13');
    expect(choose(3, { mustInclude: '0,15' })).toBe('0-1,15');
    expect(choose(2, { mustInclude: '3,8' })).toBe('3,8');
    // More than there is near them.
    expect(choose(9, { mustInclude: '12' })).toBe('0,8-15');
  });

  it('uses the NUMA nodes of a hint first, and then any', async () => {
    const topology = await machine();
    const nodes = NodeSet.of(1);
    // Left to itself it takes what is left of a node first.
    expect(String(topology.bestFit('4-5,8-15', 4))).toBe('4-5,8-9');
    expect(String(topology.bestFit('4-5,8-15', 4, { nodes }))).toBe('8-11');
    expect(String(topology.bestFit('4-5,8-9', 4, { nodes }))).toBe('4-5,8-9');
    expect(String(topology.bestFit('0-15', 3, { nodes, mustInclude: '0' }))).toBe('0,8-9');
    expect(topology.bestFit('4-5,8-15', 4, { nodes: null })).toEqual(topology.bestFit('4-5,8-15', 4));
  });

  it('that is impossible is refused, with valid values', async () => {
    const topology = await machine();
    const refused = (available: string, count: number, options: BestFitOptions) => {
      const { code, details, message } = thrownBy(() => topology.bestFit(available, count, options))!;
      return [code, details.value, message];
    };
    expect(refused('0-3', 2, { mustInclude: '3-4' })).toEqual([
      'ERR_INVALID_ARGUMENT',
      '3-4',
      expect.stringContaining('among the available CPUs, 0-3'),
    ]);
    expect(refused('0-99', 2, { mustInclude: '16' })[2]).toContain('among the available CPUs, 0-15');
    expect(refused('0-3', 1, { mustInclude: '0-1' })).toEqual([
      'ERR_INVALID_ARGUMENT',
      1,
      expect.stringContaining('at least 2'),
    ]);
    expect(refused('0-3', 5, { mustInclude: '0-1' })[0]).toBe('ERR_INSUFFICIENT_CPUS');
    expect(refused('0-3', 5, { nodes: NodeSet.of(0) })[0]).toBe('ERR_INSUFFICIENT_CPUS');
    expect(refused('0-3', 2, { nodes: '0' as never })[0]).toBe('ERR_INVALID_ARGUMENT');
    expect(refused('0-3', 2, { mustInclude: '0-' })[0]).toBe('ERR_INVALID_LIST');
  });

  it('consists of whole cores on request, even if these do not add up near the nodes', async () => {
    const columns = ['cpu', 'core', 'socket', 'numa', 'uncoreCache'];
    const cpus = [
      [0, 0, 0, 0, 0],
      [1, 0, 0, 0, 0],
      [2, 2, 0, 0, 0],
      [3, 2, 0, 0, 0],
      [4, 4, 1, 1, 1],
    ];
    const nodes = [0, 1].map((id) => ({ id, cpuLess: false, distances: null }));
    const topology = await discover({ json: { columns, cpus, nodes } as never });
    const choose = (count: number) =>
      String(topology.bestFit('0-4', count, { wholeCores: true, nodes: NodeSet.of(0) }));
    expect(choose(3)).toBe('0-1,4');
    expect(choose(4)).toBe('0-3');
    expect(choose(1)).toBe('4');
  });

  it('has the requested number of available CPUs, with the required ones, on any machine', async () => {
    await fc.assert(
      fc.asyncProperty(
        irregularMachines,
        bits,
        fc.nat(20),
        fc.boolean(),
        async (json, choice, extra, spread) => {
          const topology = await discover({ json });
          const available = some(topology.cpus, choice);
          const mustInclude = some(available, choice);
          const count = Math.min(available.size, mustInclude.size + extra);
          const strategy = spread ? 'spread' : 'packed';
          const chosen = topology.bestFit(available, count, { mustInclude, strategy });
          expect(chosen.size).toBe(count);
          expect(chosen.isSubsetOf(available)).toBe(true);
          expect(mustInclude.isSubsetOf(chosen)).toBe(true);
          // Elsewhere only once there is nothing left near.
          const near = topology.nodes
            .filter(({ cpus }) => cpus.intersects(mustInclude))
            .map(({ cpus }) => cpus);
          const free = near.reduce((all, cpus) => all.union(cpus), CpuSet.EMPTY).intersection(available);
          if (!mustInclude.isEmpty && !chosen.isSubsetOf(free)) expect(free.isSubsetOf(chosen)).toBe(true);
        },
      ),
    );
  });
});

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

async function filled(topology: Topology, counts: readonly number[]): Promise<Manager> {
  // Memory has hints of its own.
  const manager = await openManager({ topology, memoryManagerPolicy: 'None' });
  for (const [i, cpu] of counts.entries()) {
    const pod = { uid: `pod ${i}`, containers: [guaranteed('main', { cpu })] };
    await manager.admit(pod).catch((error) => {
      if (!(error instanceof AdmissionError)) throw error;
    });
  }
  for (const { uid } of manager.grants().filter((_, i) => i % 2 === 0)) await manager.release(uid);
  return manager;
}

describe('the CPUs of an admission', () => {
  it('are the choice among the free CPUs, near the nodes of its hint', async () => {
    const counts = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 6 });
    const topology = await machine();
    const { numaNodes } = topology;
    await fc.assert(
      fc.asyncProperty(
        counts,
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom(...POLICIES),
        async (before, cpu, policy) => {
          await using manager = await filled(topology, before);
          const available = manager.freeCpus();
          const hints = topology.cpuHints({ request: cpu, available });
          const { hint } = mergeHints([{ cpu: hints }], { numaNodes, policy });
          const admitted = await manager
            .admit({ containers: [{ name: 'main', limits: { cpu, memory: 1 } }] }, { policy })
            .catch((error) => {
              if (!(error instanceof AdmissionError)) throw error;
            });
          if (!admitted) return;
          const [container] = admitted.containers;
          expect(container!.hint.nodes).toEqual(hint.nodes);
          expect(topology.bestFit(available, cpu, { nodes: hint.nodes })).toEqual(container!.cpus);
          if (policy === 'none') expect(topology.bestFit(available, cpu)).toEqual(container!.cpus);
        },
      ),
      { numRuns: 200 },
    );
  });
});
