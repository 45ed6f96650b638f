// What a machine consists of, as a Topology describes it.
import type { KubeletVersion } from '../base/kubelet-features.js';
import type { NativePciDevice } from '../base/native-tables.js';
import type { CpuSet, NodeSet } from './cpu-set.js';

/**
 * Where one online CPU is. `core` and `die` are the lowest CPU id in them, `l3` is the package's id
 * where there is no L3.
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
  /** Total memory in bytes, hugepages included; 0 where unknown or none. */
  readonly memoryBytes: number;
  /**
   * Pools of hugepages by page size in bytes, with the pages configured when the topology was
   * loaded.
   */
  readonly hugepages: readonly { readonly bytes: number; readonly count: number }[];
  /**
   * To each node in ascending id order, as the firmware tells (10 is local); undefined where
   * unknown.
   */
  readonly distances: readonly number[] | undefined;
}

/**
 * What a PCI device is for, by its class: 02 is network, 01 storage, 03, 12 and 0b40 accelerator.
 */
export type PciDeviceKind = 'network' | 'storage' | 'accelerator' | 'other';

/** A PCI device (function) that is no bridge. */
export interface PciDevice {
  /** Its address, such as `0000:3b:00.0`: domain, bus, device, function. */
  readonly id: string;
  /**
   * Base class and subclass, four hexadecimal digits: `0200` is Ethernet, `0108` NVMe, `0302` a 3D
   * controller.
   */
  readonly class: string;
  /** Four hexadecimal digits, such as `8086`. */
  readonly vendor: string;
  /** Four hexadecimal digits. */
  readonly device: string;
  readonly kind: PciDeviceKind;
  /** The kernel's driver; null where it has none, and for machines described by hwloc XML. */
  readonly driver: string | null;
  /**
   * What Linux made of it: `eth0`, `nvme0n1`, `mlx5_0`, `card0`. Interfaces of other network
   * namespaces are not seen.
   */
  readonly names: readonly string[];
  /** The NUMA nodes it is near, ascending; null where the firmware does not say. */
  readonly numaNodes: readonly number[] | null;
  /**
   * Of an SR-IOV virtual function: the id of its physical function. Null for other devices, and for
   * machines described by hwloc XML.
   */
  readonly parent: string | null;
}

/**
 * A JSON machine, see docs/api.md. Counts and the kind of a device are derived: they are written,
 * and not read.
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
  /** Lists of CPUs; default: all, none, all. */
  possible?: string;
  isolated?: string;
  allowed?: string;
}

/**
 * The address of a PCI device as Linux writes it, such as `0000:3b:00.0`: domain, bus, device,
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

// A flat array as objects, one a row.
export function rows<Column extends string>(
  flat: Int32Array | Float64Array,
  columns: readonly Column[],
): Record<Column, number>[] {
  return Array.from({ length: flat.length / columns.length }, (_, row) =>
    Object.fromEntries(columns.map((column, i) => [column, flat[row * columns.length + i]])),
  ) as Record<Column, number>[];
}

/** Placement options of {@link Topology.bestFit}. */
export interface BestFitOptions {
  /**
   * `packed` (default) keeps cores whole; `spread` takes single threads from all over the package.
   */
  strategy?: 'packed' | 'spread';
  /** Balance over the fewest NUMA nodes that fit. */
  distributeAcrossNuma?: boolean;
  /** When distributing, hand out CPUs in groups of this many; default 1. */
  cpuGroupSize?: number;
  /**
   * Whole L3 groups where the request is that large, else the fewest; ignored when distributing.
   */
  preferAlignByUncoreCache?: boolean;
  /**
   * The kubelet whose choice it is; default v1.36, which aligns by L3 also what is no multiple of the
   * threads of a core.
   */
  kubeletVersion?: KubeletVersion;
  /** Whole cores only, where the machine's cores differ in size; ignored when distributing. */
  wholeCores?: boolean;
  /** CPUs that are chosen in any case. */
  mustInclude?: CpuSet | string;
  /** NUMA nodes whose CPUs are taken first, such as a hint's. null (default): those of `mustInclude`. */
  nodes?: NodeSet | null;
}

/** A question for {@link Topology.cpuHints}. */
export interface CpuHintsOptions {
  /** How many CPUs. */
  request: number;
  /** Free CPUs that are not reserved. */
  available: CpuSet | string;
  /** CPUs that earlier containers of the pod leave behind; every hint includes their NUMA nodes. */
  reusable?: CpuSet | string;
  /** What the container holds already: the hints are then of these CPUs alone. */
  assigned?: CpuSet | string;
  /** Prefer NUMA nodes of the fewest sockets (align-by-socket). */
  alignBySocket?: boolean;
  /**
   * Count whole cores only, unless the request is no multiple of the threads of a core
   * (full-pcpus-only).
   */
  fullPhysicalCpusOnly?: boolean;
}
