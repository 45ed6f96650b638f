// The description of a machine in a Topology.
import type { KubeletVersion } from '../base/kubelet-features.js';
import type { NativePciDevice } from '../base/native-tables.js';
import type { CpuSet, NodeSet } from './cpu-set.js';

/**
 * The location of an online CPU. `core` and `die` are their lowest CPU ids. `l3` is the package's
 * id if there is no L3.
 */
export interface CpuLocation {
  readonly cpu: number;
  readonly core: number;
  readonly package: number;
  readonly die: number;
  readonly l3: number;
  /** NUMA node. */
  readonly node: number;
}

/** A package, die, L3 group or core. */
export interface CpuGroup {
  readonly id: number;
  readonly cpus: CpuSet;
}

export interface NumaNode extends CpuGroup {
  /** Total memory in bytes, with hugepages; 0 if unknown or none. */
  readonly memoryBytes: number;
  /**
   * Hugepage pools by page size in bytes, with the pages configured when the topology was loaded.
   */
  readonly hugepages: readonly { readonly bytes: number; readonly count: number }[];
  /**
   * Distances to each node by ascending id, from the firmware (10 is local); undefined if unknown.
   */
  readonly distances: readonly number[] | undefined;
}

/**
 * The purpose of a PCI device by its class: 02 is network, 01 storage, 03, 12 and 0b40 accelerator.
 */
export type PciDeviceKind = 'network' | 'storage' | 'accelerator' | 'other';

/** A PCI device (function) other than a bridge. */
export interface PciDevice {
  /** The address, for example `0000:3b:00.0`: domain, bus, device, function. */
  readonly id: string;
  /**
   * Base class and subclass, four hexadecimal digits: `0200` is Ethernet, `0108` NVMe, `0302` a 3D
   * controller.
   */
  readonly class: string;
  /** Four hexadecimal digits, for example `8086`. */
  readonly vendor: string;
  /** Four hexadecimal digits. */
  readonly device: string;
  readonly kind: PciDeviceKind;
  /** The kernel's driver; null if it has none, and for machines from hwloc XML. */
  readonly driver: string | null;
  /**
   * The names of Linux devices: `eth0`, `nvme0n1`, `mlx5_0`, `card0`. Interfaces in other network
   * namespaces are invisible.
   */
  readonly names: readonly string[];
  /** The NUMA nodes near the device, ascending; null if the firmware does not report them. */
  readonly numaNodes: readonly number[] | null;
  /**
   * For an SR-IOV virtual function, the id of its physical function. Null for other devices, and
   * for machines from hwloc XML.
   */
  readonly parent: string | null;
}

/**
 * A JSON machine, see docs/api.md. Counts and kinds of devices are derived: numalign writes them
 * and does not read them.
 */
export interface MachineJson {
  name?: string;
  description?: string;
  numCpus: number;
  numCores: number;
  numSockets: number;
  numNumaNodes: number;
  numUncoreCaches: number;
  columns: string[];
  cpus: number[][];
  nodes: {
    id: number;
    cpuLess: boolean;
    distances: number[] | null;
    memory?: number;
    hugepages?: { sizeKiB: number; count: number }[];
  }[];
  devices?: {
    id: string;
    class: string;
    vendor: string;
    device: string;
    kind?: PciDeviceKind;
    driver?: string | null;
    names?: string[];
    numaNodes?: number[] | null;
    parent?: string | null;
  }[];
  /** Lists of CPUs; the defaults are all, none, all. */
  possible?: string;
  isolated?: string;
  allowed?: string;
}

/**
 * The address of a PCI device as Linux writes it, for example `0000:3b:00.0`: domain, bus, device,
 * function.
 */
export const PCI_ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/;

function kindOf(code: string): PciDeviceKind {
  if (code.startsWith('02')) return 'network';
  if (code.startsWith('01')) return 'storage';
  return /^(03|12|0b40)/.test(code) ? 'accelerator' : 'other';
}

export function pciDevice({ id, driver, names, nodes, parent, ...numbers }: NativePciDevice): PciDevice {
  const digits = (number: number) => number.toString(16).padStart(4, '0');
  const code = digits(numbers.class);
  return Object.freeze({
    id,
    class: code,
    vendor: digits(numbers.vendor),
    device: digits(numbers.device),
    kind: kindOf(code),
    driver: driver === '' ? null : driver,
    names: Object.freeze(names),
    numaNodes: nodes.length > 0 ? Object.freeze(nodes) : null,
    parent: parent === '' ? null : parent,
  });
}

// A flat array as objects, one per row.
export function rows<Column extends string>(
  flat: Int32Array | Float64Array,
  columns: readonly Column[],
): Record<Column, number>[] {
  return Array.from({ length: flat.length / columns.length }, (_, row) =>
    Object.fromEntries(columns.map((column, i) => [column, flat[row * columns.length + i]])),
  ) as Record<Column, number>[];
}

/** Options of {@link Topology.bestFit}. */
export interface BestFitOptions {
  /**
   * `packed` (default) keeps cores whole; `spread` takes single threads from all over the package.
   */
  strategy?: 'packed' | 'spread';
  /** Balance over the fewest NUMA nodes that fit. */
  distributeAcrossNuma?: boolean;
  /** When distributing, deal CPUs in groups of this many; default 1. */
  cpuGroupSize?: number;
  /**
   * Whole L3 groups if the request is that large, else the fewest groups; ignored when
   * distributing.
   */
  preferAlignByUncoreCache?: boolean;
  /**
   * The kubelet version to follow; default v1.36, which also aligns requests by L3 that are not a
   * multiple of the threads of a core.
   */
  kubeletVersion?: KubeletVersion;
  /** Whole cores only, if the machine's cores differ in size; ignored when distributing. */
  wholeCores?: boolean;
  /** CPUs that the choice includes. */
  mustInclude?: CpuSet | string;
  /**
   * NUMA nodes whose CPUs come first, for example those of a hint. null (default): the nodes of
   * `mustInclude`.
   */
  nodes?: NodeSet | null;
}

/** The options of {@link Topology.cpuHints}. */
export interface CpuHintsOptions {
  /** The number of CPUs. */
  request: number;
  /** Free CPUs that are not reserved. */
  available: CpuSet | string;
  /** CPUs that earlier containers of the pod leave behind; every hint includes their NUMA nodes. */
  reusable?: CpuSet | string;
  /** CPUs that the container holds already: the hints are for these CPUs only. */
  assigned?: CpuSet | string;
  /** Prefer NUMA nodes of the fewest sockets (align-by-socket). */
  alignBySocket?: boolean;
  /**
   * Count whole cores only, unless the request is not a multiple of the threads of a core
   * (full-pcpus-only).
   */
  fullPhysicalCpusOnly?: boolean;
}
