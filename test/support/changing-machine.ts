// One machine as it is at different times: two packages, two NUMA nodes, eight cores of two threads
// (0 and 8, 1 and 9, …), two network cards.

import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { GI } from './memory-machine.js';

export interface MachineState {
  /** CPUs that are not there at the time. */
  offline?: string;
  /** Today's ids of packages and NUMA nodes 0 and 1. */
  packages?: readonly [number, number];
  nodes?: readonly [number, number];
  /** CPUs that are in the other package and NUMA node than built in. */
  moved?: string;
  /** Bytes of each node; null: the node is missing, with its CPUs. */
  memory?: readonly [number | null, number | null];
  /** CPUs of the second half are threads of the first half's cores; default true. */
  smt?: boolean;
  devices?: readonly string[];
}

const CPUS = 16;
const CARDS = ['0000:3b:00.0', '0000:af:00.0'];

export function machineAt(state: MachineState = {}): Promise<Topology> {
  const {
    offline = '',
    packages = [0, 1],
    nodes = [0, 1],
    moved = '',
    memory = [8 * GI, 8 * GI],
    smt = true,
  } = state;
  const [away, elsewhere] = [CpuSet.parse(offline), CpuSet.parse(moved)];
  const isThere = (half: number) => memory[half] !== null;
  const cpus = Array.from({ length: CPUS }, (_, cpu) => {
    const core = smt ? cpu % (CPUS / 2) : cpu;
    const built = cpu % (CPUS / 2) < CPUS / 4 ? 0 : 1;
    return { cpu, core, half: elsewhere.has(cpu) ? 1 - built : built };
  }).filter(({ cpu, half }) => !away.has(cpu) && isThere(half));
  // As hwloc: a core is called by its lowest CPU that is online.
  const lowest = new Map<number, number>();
  for (const { cpu, core } of cpus) lowest.set(core, Math.min(cpu, lowest.get(core) ?? cpu));
  const json = {
    columns: ['cpu', 'core', 'socket', 'numa'],
    cpus: cpus.map(({ cpu, core, half }) => [cpu, lowest.get(core), packages[half], nodes[half]]),
    nodes: [0, 1]
      .filter(isThere)
      .map((half) => ({ id: nodes[half], cpuLess: false, distances: null, memory: memory[half] })),
    devices: CARDS.filter((id) => state.devices?.includes(id) ?? true).map((id, half) => ({
      ...{ id, class: '0200', vendor: '8086', device: '1572', names: [`eth${half}`] },
      numaNodes: isThere(half) ? [nodes[half]] : [],
    })),
    possible: `0-${CPUS - 1}`,
  };
  return discover({ json });
}
