// A machine as nested boxes, for its tree and its picture. Pure.
import type { CpuSet, Settings } from 'numalign';
import type { CpuGroup, NumaNode, PciDevice, Topology } from 'numalign/topology';

/** A package, or its part on a NUMA node. */
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
  /** The devices that are near only this node. */
  readonly devices: readonly PciDevice[];
  readonly children: readonly MachineBox[];
}

/**
 * The cores of an L3 group, or of its part in the outer box; without `l3`, of the outer box. On a
 * machine with several kinds of cores, those of one kind.
 */
export interface CoresBox {
  readonly kind: 'cores';
  readonly coreKind: 'performance' | 'efficiency' | undefined;
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
  if (!hasOwnL3Groups(topology)) return boxesByKind(topology, cpus, undefined);
  return topology.l3Groups
    .filter((group) => group.cpus.intersects(cpus))
    .flatMap(({ id, cpus: all }) =>
      boxesByKind(topology, all.intersection(cpus), { id, isPart: !all.isSubsetOf(cpus) }),
    );
}

function boxesByKind({ cores, coreKinds }: Topology, within: CpuSet, l3: CoresBox['l3']): CoresBox[] {
  return coreKinds
    .filter(({ cpus }) => cpus.intersects(within))
    .map(({ name, cpus }) => ({
      kind: 'cores',
      coreKind: coreKinds.length > 1 ? name : undefined,
      l3,
      cores: cores
        .map((core) => core.cpus.intersection(within).intersection(cpus))
        .filter((core) => !core.isEmpty),
    }));
}

/** The name of its L3 group; undefined without one. */
export const l3Name = ({ l3 }: CoresBox): string | undefined =>
  l3 && `L3 ${l3.id}${l3.isPart ? ' (part)' : ''}`;

/**
 * False if every L3 group is a whole package: on a machine without L3 caches packages stand for the
 * groups, so that such groups may be no caches.
 */
export function hasOwnL3Groups({ l3Groups, packages }: Topology): boolean {
  return l3Groups.some((group) => !packages.some((pack) => pack.cpus.equals(group.cpus)));
}

/** Devices that are not near a single node, by their place in words. */
export function devicesElsewhere({ devices }: Topology): Map<string, PciDevice[]> {
  const byPlace = new Map<string, PciDevice[]>();
  for (const device of devices.filter(({ numaNodes }) => numaNodes?.length !== 1)) {
    const place = device.numaNodes ? `near NUMA nodes ${device.numaNodes.join(',')}` : 'of unknown NUMA node';
    byPlace.set(place, [...(byPlace.get(place) ?? []), device]);
  }
  return byPlace;
}

const KINDS = ['network', 'storage', 'accelerator'] as const;
/** The most devices of a kind to show in one place; others are counted. */
const MAX_OF_A_KIND = 16;

export interface DeviceGroup {
  readonly kind: (typeof KINDS)[number];
  readonly devices: readonly PciDevice[];
  /** The number of further devices. */
  readonly more: number;
}

/**
 * The devices that people look for, by kind. Virtual functions are left out if their physical
 * function is in `all`, and so are devices of other kinds.
 */
export function deviceGroups(devices: readonly PciDevice[], all: readonly PciDevice[]): DeviceGroup[] {
  const parents = new Set(all.filter(({ kind }) => kind !== 'other').map(({ id }) => id));
  return KINDS.map((kind) => {
    const matches = devices.filter(
      (device) => device.kind === kind && !(device.parent !== null && parents.has(device.parent)),
    );
    const first = matches.slice(0, MAX_OF_A_KIND);
    return { kind, devices: first, more: matches.length - first.length };
  }).filter((group) => group.devices.length > 0);
}

/** The use of a CPU on a managed machine. */
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
