// Machines described by the resources of each NUMA node.
import { discover, type MachineJson, type NumaNode, type Topology } from '../../lib/entries/topology.js';

export const GI = 2 ** 30;
export const MI = 2 ** 20;

export interface NodeSpec {
  /** Default: its place in the list. */
  id?: number;
  /** One thread a core. */
  cpus: number;
  /** Bytes, hugepages included. */
  memory: number;
  /** Pages by size in KiB. */
  hugepages?: Record<number, number>;
  distances?: number[];
  tier?: NumaNode['tier'];
}

/** A machine with a socket for each node with CPUs; CPUs are numbered consecutively. */
export function machineOf(nodes: readonly NodeSpec[]): Promise<Topology> {
  const ids = nodes.map(({ id }, i) => id ?? i);
  const cpus = nodes.flatMap(({ cpus: count }, i) => Array.from({ length: count }, () => [i, ids[i]!]));
  const json = {
    columns: ['cpu', 'core', 'socket', 'numa'],
    cpus: cpus.map(([socket, node], cpu) => [cpu, cpu, socket!, node!]),
    nodes: nodes.map(({ memory, hugepages = {}, distances = null, cpus: count, tier }, i) => ({
      id: ids[i],
      cpuLess: count === 0,
      distances,
      memory,
      tier,
      hugepages: Object.entries(hugepages).map(([sizeKiB, count]) => ({ sizeKiB: Number(sizeKiB), count })),
    })),
  };
  return discover({ json: json as unknown as MachineJson });
}
