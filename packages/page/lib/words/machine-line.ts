// The parts of a machine in one line. Pure.
import type { CpuGroup, NumaNode, Topology } from 'numalign/topology';
import { hasOwnL3Groups } from './machine-boxes.js';
import { countText } from './text.js';

/** The parts of the machine in one line. */
export function machineLine(topology: Topology): string {
  const { packages, dies, nodes, l3Groups, cores, cpus } = topology;
  const parts = [
    countText(packages.length, 'package'),
    ...(dies.length > packages.length ? [countText(dies.length, 'die')] : []),
    countText(nodes.length, 'NUMA node'),
    ...(hasOwnL3Groups(topology) ? [countText(l3Groups.length, 'L3 group')] : []),
    countText(cores.length, 'core'),
    countText(cpus.size, 'CPU'),
  ];
  const origin = topology.isSimulated ? `Simulated machine (${topology.source})` : 'Machine';
  return `${origin}: ${parts.join(', ')} (${smt(cores)})`;
}

function smt(cores: readonly CpuGroup[]): string {
  const sizes = [...new Set(cores.map((core) => core.cpus.size))].sort((a, b) => a - b);
  if (sizes.length > 1) return `SMT: ${sizes.join(' or ')} CPUs a core`;
  return sizes[0] === 1 ? 'no SMT' : `SMT: ${sizes[0]} CPUs a core`;
}

/** What the memory of a node is, for people; undefined for that of most nodes with CPUs. */
export function memoryKind({ cpus, tier }: NumaNode): string | undefined {
  const name = tier.toUpperCase();
  if (!cpus.isEmpty) return tier === 'dram' ? undefined : name;
  return tier === 'other' ? 'memory only' : `memory only (${name})`;
}
