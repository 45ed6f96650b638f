// A machine as a tree of text, from 2 to 512 CPUs. Pure.
import {
  cpuUse,
  l3Name,
  type MachineBox,
  machineBoxes,
  machineLine,
  memoryKind,
  type NodeBox,
  type PackageBox,
} from '@numalign/page/words';
import { CpuSet } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { cpusNamed } from 'numalign/tools';
import type { NumaNode, Topology } from 'numalign/topology';
import { type Colors, type Page, PLAIN } from '../terminal/terminal.js';
import { countText, fill, formatBytes, printable } from '../terminal/text.js';
import { type Branch, type Painter, renderChildren } from './branches.js';
import { deviceLines } from './device-lines.js';
import {
  DEVICE_INDENT,
  distanceLines,
  elsewhereLines,
  restrictionLines,
  tierLines,
} from './machine-lines.js';
import { type StateNote, stateLines } from './state-lines.js';

export interface TreeOptions extends Page {
  readonly state?: StateNote;
}

/** The whole page, with a line feed at its end. */
export function topologyTree(
  topology: Topology,
  { width, isNarrow = false, colors = PLAIN, state }: TreeOptions,
): string {
  const status = state && 'status' in state ? state.status : undefined;
  const paint = painter(colors, status);
  const branches = machineBoxes(topology).map((box) => branchOf(box, topology, width));
  const blocks = [
    [
      ...fill(machineLine(topology).split(' '), isNarrow ? width : Infinity).map((line) => colors.bold(line)),
      ...renderChildren(branches, '', width, paint),
    ],
    elsewhereLines(topology, width, colors),
    tierLines(topology, width, colors),
    distanceLines(topology.nodes, colors),
    restrictionLines(topology, width),
    ...(state
      ? [status ? stateLines(status, width, colors) : ['note' in state ? printable(state.note) : '']]
      : []),
  ];
  return `${blocks
    .filter((block) => block.length > 0)
    .map((block) => block.join('\n'))
    .join('\n\n')}\n`;
}

function branchOf(box: MachineBox, topology: Topology, width: number): Branch {
  const children = (of: PackageBox | NodeBox) => of.children.map((child) => branchOf(child, topology, width));
  switch (box.kind) {
    case 'package': {
      const label = `Package ${box.id}${box.isPart ? ' (part)' : ''}  ${countText(box.cpus.size, 'CPU')}`;
      return { label, children: children(box) };
    }
    case 'node': {
      const devices = deviceLines(box.devices, topology.devices, width - DEVICE_INDENT).map((label) => ({
        label,
      }));
      return { label: nodeLabel(box.node), children: [...children(box), ...devices] };
    }
    case 'cores': {
      const count = countText(box.cores.length, box.coreKind ? `${box.coreKind} core` : 'core');
      return { label: [l3Name(box) ?? [], count].flat().join('  '), cores: box.cores };
    }
  }
}

function nodeLabel(node: NumaNode): string {
  const { id, cpus, memoryBytes, hugepages } = node;
  const pools = hugepages
    .filter((pool) => pool.count > 0)
    .map((pool) => `${pool.count} × ${formatBytes(pool.bytes)}`);
  return [
    `NUMA node ${id}`,
    ...(cpus.isEmpty ? [] : [cpusNamed(cpus)]),
    memoryKind(node) ?? [],
    ...(memoryBytes > 0 ? [formatBytes(memoryBytes)] : []),
    ...(pools.length > 0 ? [`hugepages ${pools.join(', ')}`] : []),
  ]
    .flat()
    .join('  ');
}

function painter(colors: Colors, status: StateStatus | undefined): Painter {
  if (!status) return String;
  const ofKubelet = status.kubelet?.cpus ?? CpuSet.EMPTY;
  const exclusive = status.grants.reduce((cpus, grant) => cpus.union(grant.cpus), ofKubelet);
  const { red, dim, yellow, cyan, green } = colors;
  const colorOf = { exclusive: red, unmanaged: dim, reserved: yellow, isolated: cyan, free: green };
  return (cpu) => colorOf[cpuUse(status.settings, exclusive, cpu)](cpu);
}
