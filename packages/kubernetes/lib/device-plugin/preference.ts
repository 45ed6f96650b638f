// Preference: which devices go well together, by numalign's best fit. Pure.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';
import type { CpuDevice, DeviceUnit } from './inventory.js';

export interface PreferenceRequest {
  readonly unit: DeviceUnit;
  readonly available: readonly CpuDevice[];
  /** Among those available. */
  readonly mustInclude: readonly CpuDevice[];
  /** How many in all. */
  readonly count: number;
}

const union = (sets: readonly CpuSet[]) => sets.reduce((all, cpus) => all.union(cpus), CpuSet.EMPTY);

// Best fit has no word for what must be included: the choice is made near it. Nearest first: its
// core, L3 group, die, NUMA node and package.
function chooseCpus(topology: Topology, available: CpuSet, mustInclude: CpuSet, count: number): CpuSet {
  if (mustInclude.isEmpty) return topology.bestFit(available, count);
  const levels = [topology.cores, topology.l3Groups, topology.dies, topology.nodes, topology.packages];
  let chosen = mustInclude;
  for (const groups of levels) {
    const near = union(groups.map(({ cpus }) => cpus).filter((cpus) => cpus.intersects(mustInclude)));
    const free = near.intersection(available).difference(chosen);
    const missing = count - chosen.size;
    if (free.size >= missing) return chosen.union(topology.bestFit(free, missing));
    chosen = chosen.union(free);
  }
  return chosen.union(topology.bestFit(available.difference(chosen), count - chosen.size));
}

/** The devices to prefer, ascending; none where there are too few. */
export function preferredDevices(topology: Topology, request: PreferenceRequest): CpuDevice[] {
  const { unit, available, mustInclude, count } = request;
  if (available.length < count) return [];
  // Of a core its lowest CPU stands for all of it, whatever the number of its threads.
  const machine = unit === 'core' ? topology.withoutSmt() : topology;
  const idOf = ({ cpus }: CpuDevice) => cpus.first!;
  const byCpu = new Map(available.map((device) => [idOf(device), device]));
  const chosen = chooseCpus(machine, CpuSet.from(byCpu.keys()), CpuSet.from(mustInclude.map(idOf)), count);
  return [...chosen].map((cpu) => byCpu.get(cpu)!);
}
