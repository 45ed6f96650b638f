// Unusual machines: cores of different sizes, uneven nodes, holes in every numbering, nodes without
// CPUs, sockets across nodes.
import fc from 'fast-check';
import type { MachineJson } from '../../lib/entries/topology.js';

const core = fc.record({ threads: fc.integer({ min: 1, max: 3 }), gap: fc.nat(2) });
const node = fc.record({
  cores: fc.array(core, { maxLength: 5 }),
  socket: fc.nat(2),
  gap: fc.integer({ min: 1, max: 3 }),
});

/** JSON machines with at least two CPUs. */
export const irregularMachines: fc.Arbitrary<MachineJson> = fc
  .array(node, { minLength: 1, maxLength: 5 })
  .map((nodes) => {
    const cpus: number[][] = [];
    let [cpu, id] = [0, -1];
    const described = nodes.map(({ cores, socket, gap }) => {
      id += gap;
      for (const { threads, gap: hole } of cores) {
        cpu += hole;
        const first = cpu;
        for (let i = 0; i < threads; i++) cpus.push([cpu++, first, socket, id, socket]);
      }
      return { id, cpuLess: cores.length === 0, distances: null };
    });
    return {
      columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
      cpus,
      nodes: described,
    } as MachineJson;
  })
  .filter(({ cpus }) => cpus.length >= 2);
