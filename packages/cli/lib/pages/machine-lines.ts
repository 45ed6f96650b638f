// The lines about a machine around its tree. Pure.
import { devicesElsewhere } from '@numalign/page/words';
import type { NumaNode, Topology } from 'numalign/topology';
import type { Colors } from '../terminal/terminal.js';
import { countText, formatBytes, labelRows, listText } from '../terminal/text.js';
import { deviceLines } from './device-lines.js';

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
