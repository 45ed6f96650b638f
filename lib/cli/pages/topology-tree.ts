// A machine as a tree of text, at 2 CPUs or at 512. Pure.

import { cpusNamed } from '../../base/text/cpus-named.js';
import type { StateStatus } from '../../entries/diagnostics.js';
import type { CpuGroup, NumaNode, Topology } from '../../entries/topology.js';
import { CpuSet } from '../../index.js';
import { type Colors, type Page, PLAIN } from '../terminal/terminal.js';
import { counted, fill, formatBytes, labelled, listed, printable } from '../terminal/text.js';
import { deviceLines } from './device-lines.js';
import {
  cpuUse,
  devicesElsewhere,
  hasOwnL3Groups,
  type MachineBox,
  machineBoxes,
  type NodeBox,
  type PackageBox,
} from './machine-boxes.js';
import { freeListed, freeText, named, sharedText } from './status-text.js';

/** A state to colour the CPUs by, or why there is none. */
export type StateNote = { readonly status: StateStatus } | { readonly note: string };

export interface TreeOptions extends Page {
  readonly state?: StateNote;
}

/**
 * A line of the tree and what is under it. `cores` follow the label, wrapped; each is the CPUs of
 * one core.
 */
interface Branch {
  readonly label: string;
  readonly cores?: readonly CpuSet[];
  readonly children?: readonly Branch[];
}

/** The whole page, ending with a line feed. */
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

/** What the machine has, in one line. */
export function machineLine(topology: Topology): string {
  const { packages, dies, nodes, l3Groups, cores, cpus } = topology;
  const parts = [
    counted(packages.length, 'package'),
    ...(dies.length > packages.length ? [counted(dies.length, 'die')] : []),
    counted(nodes.length, 'NUMA node'),
    ...(hasOwnL3Groups(topology) ? [counted(l3Groups.length, 'L3 group')] : []),
    counted(cores.length, 'core'),
    counted(cpus.size, 'CPU'),
  ];
  const origin = topology.isSimulated ? `Simulated machine (${topology.source})` : 'Machine';
  return `${origin}: ${parts.join(', ')} (${smt(cores)})`;
}

function smt(cores: readonly CpuGroup[]): string {
  const sizes = [...new Set(cores.map((core) => core.cpus.size))].sort((a, b) => a - b);
  if (sizes.length > 1) return `SMT: ${sizes.join(' or ')} CPUs a core`;
  return sizes[0] === 1 ? 'no SMT' : `SMT: ${sizes[0]} CPUs a core`;
}

function branchOf(box: MachineBox, topology: Topology, width: number): Branch {
  const children = (of: PackageBox | NodeBox) => of.children.map((child) => branchOf(child, topology, width));
  switch (box.kind) {
    case 'package': {
      const label = `Package ${box.id}${box.isPart ? ' (part)' : ''}  ${counted(box.cpus.size, 'CPU')}`;
      return { label, children: children(box) };
    }
    case 'node': {
      const devices = deviceLines(box.devices, topology.devices, width - DEVICE_INDENT).map((label) => ({
        label,
      }));
      return { label: nodeLabel(box.node), children: [...children(box), ...devices] };
    }
    case 'cores': {
      const l3 = box.l3 ? `L3 ${box.l3.id}${box.l3.isPart ? ' (part)' : ''}  ` : '';
      return { label: `${l3}${counted(box.cores.length, 'core')}`, cores: box.cores };
    }
  }
}

function nodeLabel({ id, cpus, memoryBytes, hugepages }: NumaNode): string {
  const pools = hugepages
    .filter((pool) => pool.count > 0)
    .map((pool) => `${pool.count} × ${formatBytes(pool.bytes)}`);
  return [
    `NUMA node ${id}`,
    cpus.isEmpty ? 'memory only' : cpusNamed(cpus),
    ...(memoryBytes > 0 ? [formatBytes(memoryBytes)] : []),
    ...(pools.length > 0 ? [`hugepages ${pools.join(', ')}`] : []),
  ].join('  ');
}

/** What stands before a device in the tree: three characters a level. */
const DEVICE_INDENT = 9;

/** Devices that belong to no single node, and how many there are that are not shown. */
function elsewhereLines(topology: Topology, width: number, colors: Colors): string[] {
  const { devices } = topology;
  const others = devices.filter(({ kind }) => kind === 'other').length;
  return [
    ...[...devicesElsewhere(topology)].flatMap(([place, there]) => {
      const lines = deviceLines(there, devices, width - 2);
      return lines.length > 0
        ? [colors.bold(`PCI devices ${place}`), ...lines.map((line) => `  ${line}`)]
        : [];
    }),
    ...(others > 0 ? [`${counted(others, 'PCI device')} of other kinds (listed by --output json)`] : []),
  ];
}

type Painter = (cpu: number) => string;

function painter(colors: Colors, status: StateStatus | undefined): Painter {
  if (!status) return String;
  const exclusive = status.grants.reduce((cpus, grant) => cpus.union(grant.cpus), CpuSet.EMPTY);
  const { red, dim, yellow, cyan, green } = colors;
  const colorOf = { exclusive: red, unmanaged: dim, reserved: yellow, isolated: cyan, free: green };
  return (cpu) => colorOf[cpuUse(status.settings, exclusive, cpu)](cpu);
}

function renderChildren(
  branches: readonly Branch[],
  prefix: string,
  width: number,
  paint: Painter,
): string[] {
  const leaves = branches.filter((branch) => branch.cores);
  const labelWidth = Math.max(0, ...leaves.map((leaf) => leaf.label.length));
  const cellWidth = Math.max(
    0,
    ...leaves.flatMap((leaf) => leaf.cores!.map((core) => [...core].join(',').length)),
  );
  return branches.flatMap((branch, i) => {
    const last = i === branches.length - 1;
    const [first, rest] = [`${prefix}${last ? '└─ ' : '├─ '}`, `${prefix}${last ? '   ' : '│  '}`];
    if (!branch.cores) {
      return [`${first}${branch.label}`, ...renderChildren(branch.children ?? [], rest, width, paint)];
    }
    const indent = labelWidth + 2;
    const perLine = Math.max(1, Math.floor((width - prefix.length - 3 - indent + 1) / (cellWidth + 1)));
    const lines = chunks(branch.cores, perLine).map((cores) => cells(cores, cellWidth, paint));
    return lines.map((line, n) =>
      n === 0 ? `${first}${branch.label.padEnd(indent)}${line}` : `${rest}${' '.repeat(indent)}${line}`,
    );
  });
}

function chunks<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
    list.slice(i * size, (i + 1) * size),
  );
}

// Cores in columns, each as its CPUs joined by commas. Padded by the plain text: colours have no
// width.
function cells(cores: readonly CpuSet[], width: number, paint: Painter): string {
  return cores
    .map((core, i) => {
      const padding = i === cores.length - 1 ? 0 : width - [...core].join(',').length;
      return Array.from(core, paint).join(',') + ' '.repeat(padding);
    })
    .join(' ');
}

function distanceLines(nodes: readonly NumaNode[], colors: Colors): string[] {
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

function restrictionLines({ cpus, possible, isolated, allowed }: Topology, width: number): string[] {
  const offline = possible.difference(cpus);
  const rows: [string, string][] = [];
  if (!offline.isEmpty) rows.push(['offline:', `${offline} (possible, not online)`]);
  if (!isolated.isEmpty) rows.push(['isolated:', `${isolated} (kept from the scheduler)`]);
  if (!cpus.isSubsetOf(allowed)) rows.push(['allowed:', `${listed(allowed)} (what this process may use)`]);
  return rows.length > 0 ? labelled(rows, width) : [];
}

/** Which state it is, and whether it can be relied on. */
export function stateTitle({ stateDir, scope, generation, isOfEarlierBoot, refusal }: StateStatus): string {
  const boot = isOfEarlierBoot ? ', of an earlier boot: its grants are void' : '';
  const why = refusal === null ? '' : `; nothing is granted: ${printable(refusal.message)}`;
  return `${stateDir} (${scope}), generation ${generation}${boot}${why}`;
}

/** The state of the CPUs in words, so that no colour is needed to read it. */
function stateLines(status: StateStatus, width: number, colors: Colors): string[] {
  const { managesAll, managedCPUs, reservedSystemCPUs, strictCPUReservation, isolatedCPUs } = status.settings;
  // Pods may have no exclusive CPUs at all.
  const holders = status.grants
    .filter(({ cpus }) => !cpus.isEmpty)
    .map(
      ({ name, cpus, alive }) =>
        `${cpus} (${printable(name)}${alive ? '' : ', dead: taken back at the next transaction'})`,
    );
  const unmanaged = managesAll ? [] : [['managed:', named(managedCPUs)] as const];
  const rows = [
    ['state:', stateTitle(status)],
    ...unmanaged,
    ['free:', freeText(status)],
    ['shared:', sharedText(status)],
    ...(isolatedCPUs.isEmpty
      ? []
      : [
          [
            'isolated:',
            `${named(isolatedCPUs)} (not shared), free: ${freeListed(status, status.freeIsolated)}`,
          ] as const,
        ]),
    [
      'reserved:',
      `${named(reservedSystemCPUs)}${strictCPUReservation && !reservedSystemCPUs.isEmpty ? ' (strictly: not shared)' : ''}`,
    ],
    ['exclusive:', holders.length > 0 ? holders.join(', ') : 'none'],
  ] as const;
  const green = status.refusal === null ? 'free (shared until granted)' : 'not known to be exclusive';
  const legend = [colors.green(green), colors.yellow('reserved'), colors.red('exclusive')];
  if (!isolatedCPUs.isEmpty) legend.push(colors.cyan('isolated, free'));
  if (!managesAll) legend.push(colors.dim('not managed'));
  return [
    ...labelled(rows, width),
    ...(colors.isColorSupported ? [`${'colours:'.padEnd(12)}${legend.join('  ')}`] : []),
  ];
}
