// A machine as boxes in boxes: what its tree and its picture show. Pure.
import type { CpuGroup, NumaNode, PciDevice, Topology } from '../../entries/topology.js';
import type { CpuSet, Settings } from '../../index.js';

/** A package, or the part of it that is on a NUMA node. */
export interface PackageBox {
  readonly kind: 'package';
  readonly id: number;
  readonly cpus: CpuSet;
  readonly isPart: boolean;
  readonly children: readonly MachineBox[];
}

export interface NodeBox {
  readonly kind: 'node';
  readonly node: NumaNode;
  /** Those that are near this node alone. */
  readonly devices: readonly PciDevice[];
  readonly children: readonly MachineBox[];
}

/**
 * The cores of an L3 group (or the part of it that is in the box around), or of a box without any.
 */
export interface CoresBox {
  readonly kind: 'cores';
  readonly l3: { readonly id: number; readonly isPart: boolean } | undefined;
  readonly cores: readonly CpuSet[];
}

export type MachineBox = PackageBox | NodeBox | CoresBox;

/** Every online CPU once, and every NUMA node: those without CPUs last, outside of all packages. */
export function machineBoxes(topology: Topology): MachineBox[] {
  const { nodes, packages } = topology;
  const [withCpus, withoutCpus] = [
    nodes.filter(({ cpus }) => !cpus.isEmpty),
    nodes.filter(({ cpus }) => cpus.isEmpty),
  ];
  const memoryOnly = withoutCpus.map((node) => nodeBox(topology, node, []));
  const packagesOf = (node: NumaNode) => packages.filter((pack) => pack.cpus.intersects(node.cpus));
  // Nodes are inside packages, or (numa=off, some virtual machines) packages inside nodes.
  if (nodes.some((node) => packagesOf(node).length > 1)) {
    const outer = withCpus.map((node) => {
      const inner = packagesOf(node).map((pack) => {
        const cpus = pack.cpus.intersection(node.cpus);
        return packageBox(pack, cpus, coresBoxes(topology, cpus));
      });
      return nodeBox(topology, node, inner);
    });
    return [...outer, ...memoryOnly];
  }
  const outer = packages.map((pack) => {
    const inner = withCpus.filter((node) => node.cpus.intersects(pack.cpus));
    const children = inner.map((node) => nodeBox(topology, node, coresBoxes(topology, node.cpus)));
    return packageBox(pack, pack.cpus, children);
  });
  return [...outer, ...memoryOnly];
}

function packageBox(pack: CpuGroup, cpus: CpuSet, children: readonly MachineBox[]): PackageBox {
  return { kind: 'package', id: pack.id, cpus, isPart: !pack.cpus.isSubsetOf(cpus), children };
}

function nodeBox({ devices }: Topology, node: NumaNode, children: readonly MachineBox[]): NodeBox {
  const near = devices.filter(({ numaNodes }) => numaNodes?.length === 1 && numaNodes[0] === node.id);
  return { kind: 'node', node, devices: near, children };
}

function coresBoxes(topology: Topology, cpus: CpuSet): CoresBox[] {
  const coresIn = (within: CpuSet) =>
    topology.cores.map((core) => core.cpus.intersection(within)).filter((core) => !core.isEmpty);
  if (!hasOwnL3Groups(topology)) return [{ kind: 'cores', l3: undefined, cores: coresIn(cpus) }];
  return topology.l3Groups
    .filter((group) => group.cpus.intersects(cpus))
    .map(({ id, cpus: all }) => ({
      kind: 'cores',
      l3: { id, isPart: !all.isSubsetOf(cpus) },
      cores: coresIn(all.intersection(cpus)),
    }));
}

/**
 * Where there is no L3, the package stands in for it: groups that are whole packages may be no
 * caches at all, so they are not named.
 */
export function hasOwnL3Groups({ l3Groups, packages }: Topology): boolean {
  return l3Groups.some((group) => !packages.some((pack) => pack.cpus.equals(group.cpus)));
}

/** Devices that belong to no single node, by the place that is known of them. */
export function devicesElsewhere({ devices }: Topology): Map<string, PciDevice[]> {
  const byPlace = new Map<string, PciDevice[]>();
  for (const device of devices.filter(({ numaNodes }) => numaNodes?.length !== 1)) {
    const place = device.numaNodes ? `near NUMA nodes ${device.numaNodes.join(',')}` : 'of unknown NUMA node';
    byPlace.set(place, [...(byPlace.get(place) ?? []), device]);
  }
  return byPlace;
}

const KINDS = ['network', 'storage', 'accelerator'] as const;
/** Of one kind in one place; beyond it they are counted. */
const MAX_OF_A_KIND = 16;

export interface ShownDevices {
  readonly kind: (typeof KINDS)[number];
  readonly devices: readonly PciDevice[];
  /** How many there are beside them. */
  readonly more: number;
}

/**
 * The devices that people look for, by kind. Virtual functions are left to their physical function,
 * wherever that is among `all`; devices of other kinds are left out.
 */
export function shownDevices(devices: readonly PciDevice[], all: readonly PciDevice[]): ShownDevices[] {
  const parents = new Set(all.filter(({ kind }) => kind !== 'other').map(({ id }) => id));
  return KINDS.map((kind) => {
    const of = devices.filter(
      ({ kind: own, parent }) => own === kind && !(parent !== null && parents.has(parent)),
    );
    const shown = of.slice(0, MAX_OF_A_KIND);
    return { kind, devices: shown, more: of.length - shown.length };
  }).filter((group) => group.devices.length > 0);
}

/** What of a managed machine a CPU is. */
export type CpuUse = 'exclusive' | 'unmanaged' | 'reserved' | 'isolated' | 'free';

export function cpuUse(
  { managedCPUs, reservedSystemCPUs, isolatedCPUs }: Settings,
  exclusive: CpuSet,
  cpu: number,
): CpuUse {
  if (exclusive.has(cpu)) return 'exclusive';
  if (!managedCPUs.has(cpu)) return 'unmanaged';
  if (reservedSystemCPUs.has(cpu)) return 'reserved';
  return isolatedCPUs.has(cpu) ? 'isolated' : 'free';
}
