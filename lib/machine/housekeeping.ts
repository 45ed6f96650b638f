// Housekeeping CPUs: where work goes that has to leave other CPUs. Pure.
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

/**
 * The online CPUs that are not `quiet`: those on the NUMA nodes of `base` where there are any, else
 * all. Empty where every CPU is quiet.
 */
export function housekeepingCpus(topology: Topology, base: CpuSet, quiet: CpuSet): CpuSet {
  const rest = topology.cpus.difference(quiet);
  const near = topology.nodes
    .filter(({ cpus }) => cpus.intersects(base))
    .reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY)
    .intersection(rest);
  return near.isEmpty ? rest : near;
}
