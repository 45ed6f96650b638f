// The description of a machine in a Topology.
import type { KubeletVersion } from '../base/kubelet-features.js';
import type { MemoryTier, NativePciDevice } from '../base/native-tables.js';
import type { CpuSet, NodeSet } from './cpu-set.js';

/**
 * The location of an online CPU. `core` and `die` are their lowest CPU ids. `l3` is the package's
 * id if there is no L3.
 */
export interface CpuLocation {
  /** Logical CPU id, as Linux numbers CPUs. */
  readonly cpu: number;
  /** Physical core: the lowest id of its CPUs. */
  readonly core: number;
  /** Package (socket), by the id that the kernel or the description gives it. */
  readonly package: number;
  /** Die: the lowest id of its CPUs. */
  readonly die: number;
  /** CPUs that share an L3 cache; the id of the package if there is no L3. */
  readonly l3: number;
  /** The id of its NUMA node. */
  readonly node: number;
  /** The rank of its kind of core: 0 is the slowest kind of the machine. */
  readonly kind: number;
}

/** A package, die, L3 group or core. */
export interface CpuGroup {
  /** As in the {@link CpuLocation} of its CPUs. */
  readonly id: number;
  /** Its online CPUs. */
  readonly cpus: CpuSet;
}

/**
 * Cores of one performance: the P-cores or the E-cores of a hybrid processor, the big or the LITTLE
 * ones. Its `id` is its rank: 0 is the slowest kind.
 */
export interface CoreKind extends CpuGroup {
  /** `performance` is the fastest kind, also if it is the only one; all others are `efficiency`. */
  readonly name: 'performance' | 'efficiency';
}

/** A NUMA node of a {@link Topology}. */
export interface NumaNode extends CpuGroup {
  /** Total memory in bytes, with hugepages; 0 if unknown or none. */
  readonly memoryBytes: number;
  /** What the memory is. */
  readonly tier: MemoryTier;
  /**
   * Hugepages by page size: `bytes` of a page, and the `count` of pages when the topology was
   * loaded.
   */
  readonly hugepages: readonly { readonly bytes: number; readonly count: number }[];
  /**
   * Distances to all nodes by ascending id, as the firmware reports them (10 is local); undefined
   * if unknown.
   */
  readonly distances: readonly number[] | undefined;
}

/**
 * The purpose of a PCI device by its class: `network` (02), `storage` (01), `accelerator` (03, 12 and
 * 0b40) or `other`.
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
  /** The purpose of the device, by its class. */
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
 * A machine as JSON: {@link Topology.toJSON} and `numalign topology --output json` write it,
 * {@link discover} and `--json` read it. A contradiction is ERR_INVALID_TOPOLOGY.
 *
 * `cpus` has a row for each CPU, in the order of `columns`: `core` is unique on the machine, `socket` is
 * the package, `uncoreCache` the L3 group (without it the package is one), `die` the die (without it a
 * package is one), `coreKind` the kind of core (more is faster; without it all are of one kind). `nodes` has
 * every NUMA node, also those without CPUs: `memory` in bytes, its `tier` (without it `dram` with CPUs,
 * `other` without), `distances` to all nodes in ascending order of ids (or none anywhere), `hugepages`. `devices` have `id` (the PCI
 * address), `class`, `vendor` and `device` (four hexadecimal digits), `driver`, `names`, `numaNodes`,
 * `parent`. `possible`, `isolated` and `allowed` are lists of CPUs: by default all CPUs are possible and
 * allowed, none is isolated. Counts such as `numCpus` and the `kind` of a device are written, not read.
 */
export interface MachineJson {
  /** A name for people; not read. */
  name?: string;
  /** Where the description comes from, for people; not read. */
  description?: string;
  /** Number of online CPUs; not read. */
  numCpus: number;
  /** Number of physical cores; not read. */
  numCores: number;
  /** Number of packages; not read. */
  numSockets: number;
  /** Number of NUMA nodes with CPUs; not read. */
  numNumaNodes: number;
  /** Number of L3 groups; not read. */
  numUncoreCaches: number;
  /** Bytes of memory by tier; only on machines with others than `dram`. Not read. */
  memoryByTier?: Partial<Record<MemoryTier, number>>;
  /**
   * The meaning of each column of `cpus`: `cpu`, `core`, `socket` and `numa` in any order, and
   * perhaps `uncoreCache`, `die` and `coreKind`.
   */
  columns: string[];
  /** A row for each CPU with a number for each column. */
  cpus: number[][];
  /**
   * Every NUMA node: its `id`, `memory` in bytes (default 0) and what it is (`tier`), `hugepages`
   * (default none), and `distances` to all nodes by ascending id; null: unknown for all nodes.
   * `cpuLess` is not read.
   */
  nodes: {
    id: number;
    cpuLess: boolean;
    distances: number[] | null;
    memory?: number;
    tier?: MemoryTier;
    hugepages?: { sizeKiB: number; count: number }[];
  }[];
  /** PCI devices, with members as in {@link PciDevice}; by default none. `kind` is not read. */
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
  /** List of CPU ids that could ever exist; by default all of `cpus`. */
  possible?: string;
  /** List of CPUs kept from the scheduler; by default none. */
  isolated?: string;
  /** List of CPUs that a process may use; by default all of `cpus`. */
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

/** The options of {@link Topology.bestFit}. A wrong value is ERR_INVALID_ARGUMENT. */
export interface BestFitOptions {
  /**
   * `packed` takes whole cores, `spread` single threads from all over the package.
   * @default `packed`
   */
  strategy?: 'packed' | 'spread';
  /**
   * Balances the CPUs over the fewest NUMA nodes that fit.
   * @default `false`
   */
  distributeAcrossNuma?: boolean;
  /**
   * With `distributeAcrossNuma`: hands CPUs out in groups of this many.
   * @default 1
   */
  cpuGroupSize?: number;
  /**
   * Takes whole L3 groups if the request is that large, else CPUs of the fewest groups. Ignored with
   * `distributeAcrossNuma`.
   * @default `false`
   */
  preferAlignByUncoreCache?: boolean;
  /**
   * The kubelet version whose choice to make. v1.36 aligns by L3 also requests that are not a
   * multiple of the threads of a core.
   * @default `v1.37`
   */
  kubeletVersion?: KubeletVersion;
  /**
   * Takes whole cores only, on machines whose cores differ in size. Cores go before
   * `distributeAcrossNuma`.
   * @default `false`
   */
  wholeCores?: boolean;
  /**
   * CPUs that the choice must include.
   * @default none
   */
  mustInclude?: CpuSet | string;
  /**
   * NUMA nodes whose CPUs to take first, such as those of a hint.
   * @default the nodes of `mustInclude`
   */
  nodes?: NodeSet | null;
}

/** The options of {@link Topology.cpuHints}. A wrong value is ERR_INVALID_ARGUMENT. */
export interface CpuHintsOptions {
  /**
   * How many CPUs.
   * @default required
   */
  request: number;
  /**
   * The free CPUs, without reserved ones.
   * @default required
   */
  available: CpuSet | string;
  /**
   * CPUs that earlier containers of the pod leave behind. Every hint includes their NUMA nodes.
   * @default none
   */
  reusable?: CpuSet | string;
  /**
   * CPUs that the container has already. The hints are for these CPUs alone.
   * @default none
   */
  assigned?: CpuSet | string;
  /**
   * Prefers NUMA nodes of the fewest sockets, as `align-by-socket`.
   * @default `false`
   */
  alignBySocket?: boolean;
  /**
   * Counts whole cores only, unless the request is not a multiple of the threads of a core, as
   * `full-pcpus-only`.
   * @default `false`
   */
  fullPhysicalCpusOnly?: boolean;
}
