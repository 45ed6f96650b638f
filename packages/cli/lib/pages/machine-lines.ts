// The lines about a machine around its tree. Pure.
import type { CpuGroup, NumaNode, Topology } from 'numalign/topology';
import type { Colors } from '../terminal/terminal.js';
import { countText, formatBytes, labelRows, listText } from '../terminal/text.js';
import { deviceLines } from './device-lines.js';
import { devicesElsewhere, hasOwnL3Groups } from './machine-boxes.js';

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

/** The memory of each tier, if the machine has others than DRAM: `gpu  736 GiB on 4 NUMA nodes`. */
export function tierLines({ nodes }: Topology, width: number, colors: Colors): string[] {
  const tiers = new Map<string, NumaNode[]>();
  for (const node of nodes)
    if (node.memoryBytes > 0) tiers.set(node.tier, [...(tiers.get(node.tier) ?? []), node]);
  if ([...tiers.keys()].every((tier) => tier === 'dram')) return [];
  const rows = [...tiers].map(([tier, members]): [string, string] => {
    const bytes = members.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
    return [`  ${tier}:`, `${formatBytes(bytes)} on ${countText(members.length, 'NUMA node')}`];
  });
  return [colors.bold('Memory by tier'), ...labelRows(rows, width)];
}

/** The indent of a device in the tree: three characters for each level. */
export const DEVICE_INDENT = 9;

/** Devices that are not near a single node, and the number of devices that are not shown. */
export function elsewhereLines(topology: Topology, width: number, colors: Colors): string[] {
  const { devices } = topology;
  const others = devices.filter(({ kind }) => kind === 'other').length;
  return [
    ...[...devicesElsewhere(topology)].flatMap(([place, group]) => {
      const lines = deviceLines(group, devices, width - 2);
      return lines.length > 0
        ? [colors.bold(`PCI devices ${place}`), ...lines.map((line) => `  ${line}`)]
        : [];
    }),
    ...(others > 0 ? [`${countText(others, 'PCI device')} of other kinds (listed by --output json)`] : []),
  ];
}

export function distanceLines(nodes: readonly NumaNode[], colors: Colors): string[] {
  if (nodes.length < 2) return [];
  if (nodes.some((node) => !node.distances)) return ['NUMA distances: unknown'];
  const rows = [
    ['', ...nodes.map((node) => String(node.id))],
    ...nodes.map((node) => [String(node.id), ...node.distances!.map(String)]),
  ];
  const width = Math.max(...rows.flat().map((cell) => cell.length));
  return [
    colors.bold('NUMA distances'),
    ...rows.map((row) => `  ${row.map((cell) => cell.padStart(width)).join(' ')}`),
  ];
}

export function restrictionLines({ cpus, possible, isolated, allowed }: Topology, width: number): string[] {
  const offline = possible.difference(cpus);
  const rows: [string, string][] = [];
  if (!offline.isEmpty) rows.push(['offline:', `${offline} (possible, not online)`]);
  if (!isolated.isEmpty) rows.push(['isolated:', `${isolated} (kept from the scheduler)`]);
  if (!cpus.isSubsetOf(allowed)) rows.push(['allowed:', `${listText(allowed)} (what this process may use)`]);
  return rows.length > 0 ? labelRows(rows, width) : [];
}
