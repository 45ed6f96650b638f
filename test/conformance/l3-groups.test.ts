// needs: nothing
// With prefer-align-cpus-by-uncorecache on machines whose elements differ in size: never on more L3
// groups than the kubelet's answer.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover, type MachineJson } from '../../lib/entries/topology.js';
import { budget } from '../support/budget.mjs';
import * as numalign from '../support/package.js';
import { versionOf } from './case.js';
import { idsOf, listOf } from './cpu-list.js';
import { kubeletTake } from './kubelet-take.js';
import { countL3Groups, isIrregular } from './machine.js';
import { contextOf } from './read.js';
import { readCases } from './replay.js';
import { vectors } from './support/cases.js';

/** A socket: its NUMA nodes, of L3 groups, of cores, each with so many threads. */
const socketOf = fc.array(
  fc.array(fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 3,
  }),
  { minLength: 1, maxLength: 2 },
);

function machineOf(sockets: readonly (readonly (readonly (readonly number[])[])[])[]): MachineJson {
  const cpus: number[][] = [];
  let [node, l3] = [0, 0];
  for (const [socket, nodes] of sockets.entries()) {
    for (const groups of nodes) {
      for (const cores of groups) {
        for (const threads of cores) {
          const core = cpus.length;
          for (let i = 0; i < threads; i++) cpus.push([cpus.length, core, socket, node, l3]);
        }
        l3 += 1;
      }
      node += 1;
    }
  }
  const nodes = Array.from({ length: node }, (_, id) => ({ id, cpuLess: false, distances: null }));
  const count = (at: number) => new Set(cpus.map((row) => row[at])).size;
  const [numCores, numSockets] = [count(1), count(2)];
  const columns = ['cpu', 'core', 'socket', 'numa', 'uncoreCache'];
  const counts = { numCpus: cpus.length, numCores, numSockets, numNumaNodes: node, numUncoreCaches: l3 };
  return { ...counts, columns, cpus, nodes } as unknown as MachineJson;
}

describe('the kubelet’s way to take CPUs', () => {
  it.each(['cpu-take', 'newer/cpu-take-136'])(
    'as it is written down here gives the answers of %s',
    async (name) => {
      const { path, cases } = readCases(vectors(name))!;
      const context = contextOf(path, numalign);
      const wrong: string[] = [];
      for (const { id, topology, available, count, options, cpus } of cases as any[]) {
        if (cpus === undefined || options.distributeAcrossNuma) continue;
        const { recorded } = await context.machine(topology);
        if (
          listOf(
            kubeletTake(recorded, idsOf(available), count, { ...options, version: versionOf({ id }) }),
          ) !== cpus
        )
          wrong.push(id);
      }
      expect(wrong).toEqual([]);
    },
  );
});

describe('CPUs that prefer to be aligned by L3', () => {
  const options = { strategy: 'packed', preferAlignByUncoreCache: true } as const;
  const take = async (sockets: Parameters<typeof machineOf>[0], count: number) => {
    const topology = await discover({ json: machineOf(sockets) });
    return String(topology.bestFit(topology.cpus, count, options));
  };

  it('come from the smallest group that holds them', async () => {
    const twos = (n: number) => Array<number>(n).fill(2);
    expect(await take([[[[1], [1, 1, 1, 1, 1]]]], 2)).toBe('1-2');
    expect(await take([[[twos(2), twos(6)]]], 6)).toBe('4-9');
    expect(await take([[[twos(2), twos(6)]]], 4)).toBe('0-3');
    // The kubelet takes 12 and 2.
    expect(await take([[[twos(8), twos(6), twos(7)]]], 14)).toBe('28-41');
  });

  it('come from as few groups as can be, where no single one holds them', async () => {
    const twos = (n: number) => Array<number>(n).fill(2);
    // The kubelet takes the groups of 4 and 6, and 2 of the last.
    expect(await take([[[twos(2), twos(3), twos(4)]]], 12)).toBe('0-3,10-17');
  });

  it('never come from more groups than the kubelet takes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(socketOf, { minLength: 1, maxLength: 3 }),
        fc.infiniteStream(fc.integer({ min: 0, max: 3 })),
        fc.integer({ min: 0, max: 3 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom('packed', 'spread'),
        fc.constantFrom('v1.32', 'v1.36'),
        async (sockets, dice, busy, share, strategy, version) => {
          const machine = machineOf(sockets);
          fc.pre(isIrregular(machine));
          const free = new Set(machine.cpus.map((row) => row[0]!).filter(() => dice.next().value! >= busy));
          const count = Math.ceil(share * free.size);
          const topology = await discover({ json: machine });
          const how = { strategy, preferAlignByUncoreCache: true } as const;
          const theirs = kubeletTake(machine, free, count, { ...how, version });
          // CPUs that were not free are no answer.
          fc.pre([...theirs].every((cpu) => free.has(cpu)));
          const ours = idsOf(
            String(topology.bestFit(listOf(free), count, { ...how, kubeletVersion: version })),
          );
          expect(countL3Groups(machine, ours)).toBeLessThanOrEqual(countL3Groups(machine, theirs));
        },
      ),
      { numRuns: budget({ all: 20_000, usual: 200 }) },
    );
  });
});
