// NUMA nodes with CPUs: which of them is nearest to a node without any, and a machine of them alone.
import { oncePer } from '../base/collections/once-per.js';
import { native } from '../base/native.js';
import { HUGEPAGE_COLUMNS } from '../base/native-tables.js';
import { Topology } from './topology.js';

/** By position: the position of the nearest node with CPUs, the lowest of equals. */
export const homes = oncePer(({ nodes }: Topology): readonly number[] => {
  const withCpus = nodes.flatMap(({ cpus }, at) => (cpus.isEmpty ? [] : [at]));
  return nodes.map(({ cpus, distances }, at) => {
    if (!cpus.isEmpty) return at;
    const far = (other: number) => distances?.[other] ?? 0;
    return withCpus.reduce((nearest, other) => (far(other) < far(nearest) ? other : nearest));
  });
});

/** The nodes with CPUs that are nearest to these, ascending. REQUIRES: nodes of the machine. */
export const homesOf = (topology: Topology, ids: readonly number[]): number[] => {
  const { numaNodes } = topology;
  const near = ids.map((id) => numaNodes[homes(topology)[numaNodes.indexOf(id)]!]!);
  return [...new Set(near)].sort((a, b) => a - b);
};

/** The same machine without NUMA nodes that have no CPUs, and without PCI devices. */
export const withCpuNodes = oncePer((topology: Topology): Topology => {
  if (topology.nodes.every(({ cpus }) => !cpus.isEmpty)) return topology;
  const { nodes, memory, tiers, distances, hugepages, ...rest } = native.describeTopology(topology.handle);
  const isKept = (at: number) => !topology.nodes[at]!.cpus.isEmpty;
  const keptIds = new Set(nodes.filter((_, at) => isKept(at)));
  const { length } = nodes;
  const columns = HUGEPAGE_COLUMNS.length;
  return new Topology(
    topology.source,
    native.createTopology({
      ...rest,
      devices: [],
      nodes: nodes.filter((_, at) => isKept(at)),
      memory: memory.filter((_, at) => isKept(at)),
      tiers: tiers.filter((_, at) => isKept(at)),
      distances: distances.filter((_, i) => isKept(Math.floor(i / length)) && isKept(i % length)),
      hugepages: hugepages.filter((_, i) => keptIds.has(hugepages[i - (i % columns)]!)),
    }),
  );
});
