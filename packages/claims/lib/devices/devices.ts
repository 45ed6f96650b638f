// Devices: a machine as devices of Dynamic Resource Allocation, which claims are for. Pure.
import { CpuSet } from 'numalign';
import { binaryBytes } from 'numalign/tools';
import type { CpuLocation, Topology } from 'numalign/topology';

/** The name of the driver, and the domain of its attributes and capacities. */
export const DRIVER = 'numalign.io';

/**
 * What a device with CPUs is. Claims share the CPUs of a `node` (a NUMA node) and of an `l3` (a group
 * of CPUs with one L3 cache, within a NUMA node); a `core` (with all its threads) and a `cpu` have
 * one claim.
 */
export const DEVICE_UNITS = ['node', 'l3', 'core', 'cpu'] as const;
export type DeviceUnit = (typeof DEVICE_UNITS)[number];

/** `memory`: that of a NUMA node, where no device with CPUs has it. */
export type DeviceKind = DeviceUnit | 'memory';

/** What a device stands for, also while its CPUs are granted. */
export interface DeviceIdentity {
  readonly name: string;
  readonly kind: DeviceKind;
  /** Its NUMA node. */
  readonly node: number;
  /** Its L3 group; null: it has several, or no CPUs. */
  readonly l3: number | null;
  /** Its online CPUs; those of `memory` are of its NUMA node. */
  readonly cpus: CpuSet;
}

export type AttributeValue = number | string | boolean | readonly string[];

/** An amount that a device has: CPUs or bytes. */
export interface Capacity {
  readonly value: number;
  /** What a claim takes of it that does not name it; undefined: all. */
  readonly default?: number;
  /** Claims take multiples of it, and as few as `least`; undefined: any amount. */
  readonly step?: number;
  readonly least?: number;
}

export interface Device extends DeviceIdentity {
  /** Unqualified names are in the domain of the driver. */
  readonly attributes: ReadonlyMap<string, AttributeValue>;
  readonly capacity: ReadonlyMap<string, Capacity>;
  /** Whether several claims may have parts of it. */
  readonly isShared: boolean;
}

export interface PcieRoot {
  /** Such as `pci0000:00`. */
  readonly root: string;
  readonly cpus: CpuSet;
}

/** What claims may have of a machine. */
export interface DeviceMachine {
  readonly topology: Topology;
  /** Online, managed, neither reserved nor isolated, and of no grant but those of claims. */
  readonly cpus: CpuSet;
  /** Whether one of these must stay for all that has no exclusive CPUs. */
  readonly keepsOne: boolean;
  /** Claims get whole cores only. */
  readonly wholeCores: boolean;
  /** Bytes, without those that are reserved or of other grants. `type` as `hugepages-2Mi`. */
  readonly memory: readonly { readonly node: number; readonly type: string; readonly bytes: number }[];
  readonly pcieRoots?: readonly PcieRoot[];
  /** Whether attributes may be lists (the gate DRAListTypeAttributes). */
  readonly hasLists?: boolean;
}

/** The capacity for a type of memory: the API has no hyphens in names, so that it is `hugepages2Mi`. */
export const capacityName = (type: string): string => type.replace('-', '');

/** The type of memory of a capacity; undefined: it is none, such as `cpu`. */
export function memoryType(capacity: string): string | undefined {
  const [, size] = /^hugepages(\d+[KMGTP]?i?)$/.exec(capacity) ?? [];
  return size === undefined ? (capacity === 'memory' ? 'memory' : undefined) : `hugepages-${size}`;
}

const NAME = /^(node|l3|core|cpu|memory)-\d+(-node-\d+)?$/;

/** What a device of this name stands for; undefined: the machine has none now. */
export function deviceNamed(topology: Topology, name: string): DeviceIdentity | undefined {
  const [, kind] = NAME.exec(name) ?? [];
  return kind === undefined
    ? undefined
    : identities(topology, kind as DeviceKind).find((device) => device.name === name);
}

/** All that the machine has of a kind, in the order in which schedulers try them. */
function identities(topology: Topology, kind: DeviceKind): DeviceIdentity[] {
  const { nodes, cores, locations } = topology;
  const one = (id: number, node: number, cpus: CpuSet): DeviceIdentity => {
    const groups = distinct(locationsOf(topology, cpus), 'l3');
    return { name: `${kind}-${id}`, kind, node, l3: groups.length === 1 ? groups[0]! : null, cpus };
  };
  switch (kind) {
    case 'memory':
      return nodes.map(({ id, cpus }) => one(id, id, cpus));
    case 'node':
      return nodes.filter(({ cpus }) => !cpus.isEmpty).map(({ id, cpus }) => one(id, id, cpus));
    case 'l3':
      return l3Identities(topology);
    case 'core':
      return cores.map(({ id, cpus }) => one(id, topology.nodesOf(cpus).first!, cpus));
    case 'cpu':
      return locations.map(({ cpu, node }) => one(cpu, node, CpuSet.of(cpu)));
  }
}

// Where firmware splits a socket into NUMA nodes, an L3 cache may be that of several: its parts have
// the node in their names.
function l3Identities({ nodes, l3Groups }: Topology): DeviceIdentity[] {
  return l3Groups.flatMap(({ id, cpus: all }) => {
    const parts = nodes.filter(({ cpus }) => cpus.intersects(all));
    return parts.map(({ id: node, cpus }): DeviceIdentity => {
      const name = parts.length === 1 ? `l3-${id}` : `l3-${id}-node-${node}`;
      return { name, kind: 'l3', node, l3: id, cpus: cpus.intersection(all) };
    });
  });
}

const locationsOf = ({ locations }: Topology, cpus: CpuSet) => locations.filter(({ cpu }) => cpus.has(cpu));

const distinct = (locations: readonly CpuLocation[], field: keyof CpuLocation) => [
  ...new Set(locations.map((location) => location[field])),
];

/**
 * The devices of a machine. Claims may have all their CPUs: devices are smaller, or missing, where
 * CPUs are reserved, offline or granted to others.
 */
export function devicesOf(machine: DeviceMachine, unit: DeviceUnit): Device[] {
  const { topology } = machine;
  const cpus = claimable(machine, unit);
  const withCpus = identities(topology, unit).flatMap((identity) => {
    const device = deviceOf(identity, cpus, machine);
    return device ? [device] : [];
  });
  const memory = identities(topology, 'memory').filter((node) => unit !== 'node' || node.cpus.isEmpty);
  return [...withCpus, ...memory.map((node) => memoryDevice(node, machine))].filter(
    ({ capacity }) => capacity.size > 0,
  );
}

/** The CPUs for claims, in whole cores if they only get these. */
function claimable({ topology, cpus: all, keepsOne, wholeCores }: DeviceMachine, unit: DeviceUnit): CpuSet {
  const inCores = wholeCores || unit === 'core';
  const cpus = inCores ? topology.wholeCores(all) : all;
  // What is not in a whole core stays, too.
  if (!keepsOne || cpus.isEmpty || cpus.size < all.size) return cpus;
  const core = topology.cores.find((each) => each.cpus.has(cpus.first!))!.cpus;
  return cpus.difference(inCores ? core : CpuSet.of(cpus.first!));
}

/** Undefined: none of its CPUs are left, or not all of those of a core. */
function deviceOf(identity: DeviceIdentity, from: CpuSet, machine: DeviceMachine): Device | undefined {
  const { kind } = identity;
  const { topology, wholeCores } = machine;
  const isShared = kind === 'node' || kind === 'l3';
  const cpus = identity.cpus.intersection(from);
  const step = wholeCores ? topology.cpusPerCore : 1;
  if (isShared ? cpus.size < step : cpus.size < identity.cpus.size) return undefined;
  const capacity = new Map<string, Capacity>([
    ['cpu', isShared ? amount(cpus.size - (cpus.size % step), step, step) : { value: cpus.size }],
    ...(kind === 'node' ? memoryCapacity(identity, machine) : []),
  ]);
  return { ...identity, cpus, attributes: attributesOf(identity, machine), capacity, isShared };
}

const memoryDevice = (identity: DeviceIdentity, machine: DeviceMachine): Device => ({
  ...identity,
  attributes: attributesOf(identity, machine),
  capacity: new Map(memoryCapacity(identity, machine)),
  isShared: true,
});

// The API takes no step that is larger than the rest of the amount.
const amount = (value: number, least: number, step: number, byDefault = least): Capacity =>
  least + step > value
    ? { value, default: byDefault, ...(least > 0 && { least }) }
    : { value, default: byDefault, least, step };

// Without a default of 0, a claim for CPUs alone would get all memory.
function memoryCapacity({ node }: DeviceIdentity, { topology, memory }: DeviceMachine): [string, Capacity][] {
  const { hugepages } = topology.nodes.find(({ id }) => id === node)!;
  const pages = new Map(hugepages.map(({ bytes }) => [`hugepages-${binaryBytes(bytes)}`, bytes]));
  return memory
    .filter((each) => each.node === node && each.bytes > 0)
    .map(({ type, bytes }): [string, Capacity] => {
      const page = pages.get(type);
      const whole = page === undefined ? bytes : bytes - (bytes % page);
      return [
        capacityName(type),
        page === undefined ? { value: whole, default: 0 } : amount(whole, 0, page, 0),
      ];
    })
    .filter(([, { value }]) => value > 0);
}

// The API's limit for the values of a device, most of which these may be.
const MOST_ROOTS = 32;

function attributesOf(identity: DeviceIdentity, machine: DeviceMachine): Map<string, AttributeValue> {
  const { kind, node, l3, cpus } = identity;
  const { topology, pcieRoots = [], hasLists = false } = machine;
  const locations = locationsOf(topology, cpus);
  const only = (field: keyof CpuLocation) => {
    const values = distinct(locations, field);
    return values.length === 1 ? values[0] : undefined;
  };
  const coreKind = topology.coreKinds.find(
    (each) => each.cpus.intersects(cpus) && cpus.isSubsetOf(each.cpus),
  );
  const roots = pcieRoots.filter((each) => each.cpus.intersects(cpus)).map(({ root }) => root);
  const hasMemory = kind === 'node' || kind === 'memory';
  const attributes: [string, AttributeValue | undefined | null][] = [
    ['resource.kubernetes.io/numaNode', node],
    [
      'resource.kubernetes.io/pcieRoot',
      roots.length > 1 && hasLists ? roots.slice(0, MOST_ROOTS) : undefined,
    ],
    ['resource.kubernetes.io/pcieRoot', roots.length === 1 ? roots[0] : undefined],
    ['kind', kind],
    ['socket', only('package')],
    ['l3', l3],
    ['core', kind === 'core' || kind === 'cpu' ? only('core') : undefined],
    ['cpu', kind === 'cpu' ? only('cpu') : undefined],
    ['smt', cpus.isEmpty ? undefined : distinct(locations, 'core').length < coreThreads(topology, cpus)],
    ['coreKind', coreKind?.name],
    ['tier', hasMemory ? topology.nodes.find(({ id }) => id === node)!.tier : undefined],
  ];
  return new Map(
    attributes.filter((each): each is [string, AttributeValue] => each[1] !== undefined && each[1] !== null),
  );
}

/** The threads of all cores that have any of the CPUs. */
const coreThreads = ({ cores }: Topology, cpus: CpuSet): number =>
  cores.reduce((sum, core) => sum + (core.cpus.intersects(cpus) ? core.cpus.size : 0), 0);
