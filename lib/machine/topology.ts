// Topology: the parts of a machine. Discovered by hwloc, or read from an hwloc XML file, an hwloc
// synthetic string or a JSON machine.
import { checkOptions } from '../base/check-options.js';
import { native } from '../base/native.js';
import {
  CPU_COLUMNS,
  HUGEPAGE_COLUMNS,
  type NativePciDevice,
  type TopologyDescription,
} from '../base/native-tables.js';
import type { TopologyHandle, Words } from '../base/words.js';
import { bestFit, invalid } from './best-fit.js';
import { CpuSet, NodeSet } from './cpu-set.js';
import { MAX_HINT_NODES } from './hint-masks.js';
import { HintFamily } from './hints.js';
import {
  type BestFitOptions,
  type CoreKind,
  type CpuGroup,
  type CpuHintsOptions,
  type CpuLocation,
  type MachineJson,
  type NumaNode,
  type PciDevice,
  pciDevice,
  rows,
} from './machine-description.js';

/** An immutable machine; {@link discover} makes it. */
export class Topology {
  /** `machine`, or the kind of the description. */
  readonly source: 'machine' | 'xml' | 'synthetic' | 'json';
  /** The machine in the native core; opaque. */
  readonly handle: TopologyHandle;
  /** Every online CPU of the machine, even those that the caller may not use. */
  readonly cpus: CpuSet;
  /** CPU ids that could ever exist. */
  readonly possible: CpuSet;
  /** CPUs kept from the scheduler (isolcpus=) when the topology was loaded. */
  readonly isolated: CpuSet;
  /** CPUs that the kernel lets the loading process use (its cpuset), whatever its affinity was. */
  readonly allowed: CpuSet;
  /** One entry per online CPU, ascending. */
  readonly locations: readonly CpuLocation[];
  /** Every NUMA node, ascending, even without CPUs or memory. */
  readonly nodes: readonly NumaNode[];
  /** The ids of `nodes`. */
  readonly numaNodes: readonly number[];
  /** Distances between nodes, row by row in the order of `nodes`; undefined if unknown. */
  readonly distances: Words | undefined;
  /** Packages (sockets), ascending by id. */
  readonly packages: readonly CpuGroup[];
  /** Dies, ascending by id; a package without dies is one. */
  readonly dies: readonly CpuGroup[];
  /** CPUs that share an L3 cache, ascending by id; a package without L3 is one group. */
  readonly l3Groups: readonly CpuGroup[];
  /** Physical cores, ascending by id. */
  readonly cores: readonly CpuGroup[];
  /** Kinds of cores, the fastest first; most machines have one. */
  readonly coreKinds: readonly CoreKind[];
  /** True if all cores have the same number of threads. */
  readonly isUniform: boolean;
  /**
   * Threads per core; of cores that differ, the greatest number that divides the threads of each.
   * With `full-pcpus-only` requests are multiples of it.
   */
  readonly cpusPerCore: number;
  // Undefined until first asked for: most programs never do, and there may be hundreds.
  #devices: readonly PciDevice[] | undefined;

  /** Use {@link discover}. */
  constructor(source: Topology['source'], handle: TopologyHandle) {
    this.source = source;
    this.handle = handle;
    const description = native.describeTopology(handle);
    this.locations = Object.freeze(rows(description.cpus, CPU_COLUMNS));
    this.cpus = CpuSet.from(this.locations.map((location) => location.cpu));
    this.possible = new CpuSet(description.possible);
    this.isolated = new CpuSet(description.isolated);
    this.allowed = new CpuSet(description.allowed);
    this.packages = this.#groups('package');
    this.dies = this.#groups('die');
    this.l3Groups = this.#groups('l3');
    this.cores = this.#groups('core');
    this.coreKinds = this.#kinds();
    this.isUniform = this.cores.every((core) => core.cpus.size === this.cores[0]!.cpus.size);
    this.cpusPerCore = this.cores.reduce((unit, core) => greatestDivisor(unit, core.cpus.size), 0);
    this.nodes = this.#nodes(description);
    this.distances = description.distances.length > 0 ? description.distances : undefined;
    this.numaNodes = Object.freeze(this.nodes.map((node) => node.id));
    if (description.devices) this.#devices = devicesOf(description.devices);
    Object.freeze(this);
  }

  /** The PCI devices without bridges, by id. Synthetic machines have none. */
  get devices(): readonly PciDevice[] {
    this.#devices ??= devicesOf(native.readDevices(this.handle));
    return this.#devices;
  }

  /** True if this is not the machine that numalign runs on. Its decisions cannot be applied. */
  get isSimulated(): boolean {
    return this.source !== 'machine';
  }

  /** The NUMA nodes that have any of these CPUs. */
  nodesOf(cpus: CpuSet): NodeSet {
    return NodeSet.from(this.nodes.filter((node) => node.cpus.intersects(cpus)).map((node) => node.id));
  }

  /**
   * Chooses `count` CPUs out of `available` as the kubelet's static CPU policy does (KEP-3570):
   * whole sockets or NUMA nodes first, then whole L3 groups (if asked), whole cores, and the CPUs
   * that fragment least. It takes CPUs of `nodes` first. It includes `mustInclude`, and chooses the
   * rest as for a grant that grows.
   * @throws ERR_INSUFFICIENT_CPUS if fewer are available; ERR_INVALID_ARGUMENT for a count or group
   *   size that is not a whole number, or a `mustInclude` that is larger or not available
   */
  bestFit(available: CpuSet | string, count: number, options: BestFitOptions = {}): CpuSet {
    return bestFit(this, CpuSet.coerce(available), count, options);
  }

  /** The CPUs of `cpus` whose whole core is in `cpus`. */
  wholeCores(cpus: CpuSet | string): CpuSet {
    return new CpuSet(native.wholeCores(this.handle, CpuSet.coerce(cpus).words));
  }

  /**
   * Returns the topology hints of a request for CPUs, as the kubelet's static CPU policy gives them
   * to the Topology Manager (KEP-693): every set of NUMA nodes that has enough CPUs, preferred if
   * no smaller set could ever be enough.
   * @throws ERR_INVALID_ARGUMENT for a request that is not a whole number from 1, or on a machine of
   *   more than 64 NUMA nodes
   */
  cpuHints(options: CpuHintsOptions): HintFamily {
    const { request, available, reusable, assigned, alignBySocket, fullPhysicalCpusOnly } = checkOptions(
      options,
      CPU_HINTS_OPTIONS,
      'cpuHints',
    ) as unknown as CpuHintsOptions;
    if (!Number.isInteger(request) || request < 1 || request > CpuSet.MAX_ID) {
      invalid('request', request, 'a whole number of CPUs, at least 1');
    }
    if (this.nodes.length > MAX_HINT_NODES) {
      invalid('the number of NUMA nodes', this.nodes.length, `at most ${MAX_HINT_NODES}`);
    }
    let free = CpuSet.coerce(assigned ?? available);
    const reused = assigned === undefined && reusable !== undefined ? CpuSet.coerce(reusable) : CpuSet.EMPTY;
    if (assigned !== undefined && free.size !== request) return HintFamily.from([], this.numaNodes);
    const isWhole =
      assigned === undefined && fullPhysicalCpusOnly === true && request % this.cpusPerCore === 0;
    if (isWhole) free = this.wholeCores(free.union(reused));
    return new HintFamily(
      native.cpuHints({
        topology: this.handle,
        available: free.words,
        reusable: reused.words,
        count: request,
        alignBySocket: alignBySocket === true,
        wholeCores: isWhole && !this.isUniform,
        keepsReusable: false,
        claims: [],
      }),
      this.numaNodes,
    );
  }

  /** The same machine with one thread per core, its lowest. */
  withoutSmt(): Topology {
    return this.withOnly(CpuSet.from(this.cores.map((core) => core.cpus.first!)));
  }

  /** The same machine without other CPUs. REQUIRES: a CPU of it. */
  withOnly(kept: CpuSet): Topology {
    const { cpus, ...rest } = native.describeTopology(this.handle);
    const columns = CPU_COLUMNS.length;
    const rows = cpus.filter((_, i) => kept.has(cpus[i - (i % columns)]!));
    return new Topology(this.source, native.createTopology({ ...rest, cpus: rows }));
  }

  /** The machine in the JSON form that {@link discover} reads. */
  toJSON(): MachineJson {
    const hasKinds = this.coreKinds.length > 1;
    return {
      numCpus: this.cpus.size,
      numCores: this.cores.length,
      numSockets: this.packages.length,
      numNumaNodes: this.nodes.filter((node) => !node.cpus.isEmpty).length,
      numUncoreCaches: this.l3Groups.length,
      columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache', 'die', ...(hasKinds ? ['coreKind'] : [])],
      cpus: this.locations.map((at) => [
        ...[at.cpu, at.core, at.package, at.node, at.l3, at.die],
        ...(hasKinds ? [at.kind] : []),
      ]),
      nodes: this.nodes.map((node) => ({
        id: node.id,
        cpuLess: node.cpus.isEmpty,
        distances: node.distances ? [...node.distances] : null,
        memory: node.memoryBytes,
        hugepages: node.hugepages.map((pool) => ({ sizeKiB: pool.bytes / 1024, count: pool.count })),
      })),
      devices: this.devices.map(({ names, numaNodes, ...device }) => ({
        ...device,
        names: [...names],
        numaNodes: numaNodes && [...numaNodes],
      })),
      possible: this.possible.toString(),
      isolated: this.isolated.toString(),
      allowed: this.allowed.toString(),
    };
  }

  #kinds(): readonly CoreKind[] {
    const kinds = [...this.#groups('kind')].reverse();
    return Object.freeze(
      kinds.map((kind, i) => Object.freeze({ ...kind, name: i === 0 ? 'performance' : 'efficiency' })),
    );
  }

  #groups(member: keyof CpuLocation): readonly CpuGroup[] {
    const cpus = new Map<number, number[]>();
    for (const location of this.locations) {
      const id = location[member];
      const list = cpus.get(id);
      if (list) list.push(location.cpu);
      else cpus.set(id, [location.cpu]);
    }
    const ids = [...cpus.keys()].sort((a, b) => a - b);
    return Object.freeze(ids.map((id) => Object.freeze({ id, cpus: CpuSet.from(cpus.get(id)!) })));
  }

  #nodes({ nodes, memory, distances, hugepages }: TopologyDescription): readonly NumaNode[] {
    const cpus = new Map(this.#groups('node').map((group) => [group.id, group.cpus]));
    const pools = rows(hugepages, HUGEPAGE_COLUMNS);
    const n = nodes.length;
    return Object.freeze(
      Array.from(nodes, (id, i) =>
        Object.freeze({
          id,
          cpus: cpus.get(id) ?? CpuSet.EMPTY,
          memoryBytes: memory[i]!,
          hugepages: Object.freeze(
            pools.filter((pool) => pool.node === id).map(({ bytes, count }) => ({ bytes, count })),
          ),
          distances:
            distances.length > 0 ? Object.freeze([...distances.subarray(i * n, (i + 1) * n)]) : undefined,
        }),
      ),
    );
  }
}

const devicesOf = (devices: readonly NativePciDevice[]) => Object.freeze(devices.map(pciDevice));

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));

const CPU_HINTS_OPTIONS = [
  'request',
  'available',
  'reusable',
  'assigned',
  'alignBySocket',
  'fullPhysicalCpusOnly',
] as const;
