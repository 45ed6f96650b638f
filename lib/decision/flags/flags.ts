// Flags: what no longer holds about a grant on record, because the machine or its settings have
// changed. A flagged grant stays as it is. Pure.
import type { Assignments } from '../../account/assignments.js';
import { bookedOn, type MemoryBlock } from '../../account/booked-memory.js';
import { areInPlace, type CpuMove, movedCpus } from '../../account/cpu-identities.js';
import { cpusOfPods, cpusOfSome } from '../../account/cpus-of-pods.js';
import { devicesOfPods } from '../../account/held-devices.js';
import { memoryOfPods } from '../../account/memory-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { type CpuPool, cpusOf, devicesOf, memoryOf, poolOf } from '../../account/pod-holdings.js';
import type { CpuSnapshot } from '../../account/pools.js';
import { formatBytes } from '../../input/values/quantity.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { PCI_ADDRESS } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';
import type { DeviceResources } from '../devices/device-resources.js';
import type { FreeHugepages } from '../draft/memory-draft.js';
import { type HugepagesTaken, hugepagesTaken } from '../memory/hugepages-taken.js';
import { allocatableOn, isMemoryKnown } from '../memory/memory-tables.js';
import { type CpuTaken, type DeviceTaken, type MemoryTaken, takenFlags } from './kubelet-flags.js';
import { poolShortage, type SharedPoolShort, sharedPoolShort } from './shared-pool-short.js';

/**
 * CPUs of the grant are offline (they belong to it again when they come back), reserved by now, no
 * longer managed, or, for a grant of isolated CPUs, no longer isolated.
 */
export interface CpuFlag {
  /** Which of the four cases; literal and stable. */
  readonly code: 'CPU_OFFLINE' | 'CPU_RESERVED' | 'CPU_UNMANAGED' | 'CPU_NOT_ISOLATED';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The CPUs of the grant that this concerns. */
  readonly cpus: CpuSet;
}

/** CPUs of the grant are in another core, package or NUMA node than at the admission. */
export interface CpuMoved {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'CPU_MOVED';
  /** One line for people, with the first of the moves; the wording may change. */
  readonly message: string;
  /** The CPUs of the grant that are elsewhere. */
  readonly cpus: CpuSet;
  /** Where each of these CPUs was and is, ascending by CPU. */
  readonly moves: readonly CpuMove[];
}

/** NUMA nodes of the grant's memory are missing, or have less than is granted on them. */
export interface MemoryGone {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'MEMORY_GONE';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The memory type. */
  readonly resource: string;
  /** The nodes that share the memory. */
  readonly nodes: readonly number[];
  /** The missing ones among them. */
  readonly gone: readonly number[];
  /** What this grant has there. */
  readonly bytes: number;
  /** What all grants have there. */
  readonly booked: number;
  /** What grants can have there. */
  readonly allocatable: number;
}

/** Devices of the grant are missing or unhealthy. */
export interface DeviceGone {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'DEVICE_GONE';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The name of the resource, such as `example.com/nic`. */
  readonly resource: string;
  /** Ids of devices that are not registered, or not in the machine. */
  readonly gone: readonly string[];
  /** Ids of devices that are registered as unhealthy. */
  readonly ill: readonly string[];
}

/** Something that no longer holds about a grant. */
export type Flag =
  | CpuFlag
  | CpuMoved
  | CpuTaken
  | MemoryGone
  | MemoryTaken
  | HugepagesTaken
  | SharedPoolShort
  | DeviceGone
  | DeviceTaken;

/** What the flags of a state's pods depend on. */
export interface FlagFacts {
  readonly state: Assignments;
  readonly topology: Topology;
  /** The registered devices. Unregistered PCI devices are looked up in the machine. */
  readonly resources: DeviceResources;
  /** The CPUs at this moment. */
  readonly present: CpuSnapshot;
  /** The kernel's free hugepages. */
  readonly hugepages: FreeHugepages;
}

/** The flags of a pod on record. */
export function flagsOf(pod: PodAssignment, facts: FlagFacts): readonly Flag[] {
  const { state, topology, resources, present, hugepages } = facts;
  return Object.freeze([
    ...cpuFlags(cpusOf(pod), poolOf(pod), facts),
    ...moveFlags(pod, state, topology),
    ...memoryFlags(memoryOf(pod), state, topology),
    ...hugepagesTaken(memoryOf(pod), state, topology, hugepages),
    ...sharedPoolShort(pod, state, present),
    ...deviceFlags(pod, topology, resources),
    ...takenFlags(pod, state, topology),
  ]);
}

const NO_FLAGS: readonly Flag[] = Object.freeze([]);

/**
 * Returns {@link flagsOf} for each pod of the state. Checks single pods only if a check of all pods
 * together finds something.
 */
export function flagsOfEach(facts: FlagFacts): (pod: PodAssignment) => readonly Flag[] {
  const { state, topology, resources, present, hugepages } = facts;
  const { pods, kubelet } = state;
  const isolated = pods.filter((pod) => poolOf(pod) === 'isolated');
  const areUnflagged =
    cpuFlags(cpusOfPods(pods), 'ordinary', facts).length === 0 &&
    cpuFlags(cpusOfSome(isolated), 'isolated', facts).length === 0 &&
    areInPlace(state, topology) &&
    memoryFlags(memoryOfPods(pods), state, topology).length === 0 &&
    (hugepages.size === 0 || hugepagesTaken(memoryOfPods(pods), state, topology, hugepages).length === 0) &&
    poolShortage(state, present).missing === 0 &&
    (devicesOfPods(pods).keys.size === 0 ||
      pods.every((pod) => deviceFlags(pod, topology, resources).length === 0)) &&
    (kubelet === null || pods.every((pod) => takenFlags(pod, state, topology).length === 0));
  return areUnflagged ? () => NO_FLAGS : (pod) => flagsOf(pod, facts);
}

/** Returns `CPU 3 is` or `CPUs 2-3 are`. */
function theseAre(cpus: CpuSet): string {
  return cpus.size === 1 ? `CPU ${cpus} is` : `CPUs ${cpus} are`;
}

function cpuFlags(held: CpuSet, pool: CpuPool, { state, present }: FlagFacts): CpuFlag[] {
  const { managedCPUs, reservedSystemCPUs, isolatedCPUs } = state.settings;
  const { online } = present;
  const notKernelIsolated = () => held.intersection(online).difference(isolatedCPUs ?? present.isolated);
  const cases: [CpuFlag['code'], CpuSet, string][] = [
    ['CPU_OFFLINE', held.difference(online), 'offline'],
    ['CPU_RESERVED', held.intersection(reservedSystemCPUs), 'now reserved for the system'],
    [
      'CPU_UNMANAGED',
      managedCPUs === null ? CpuSet.EMPTY : held.difference(managedCPUs),
      'no longer managed',
    ],
    ['CPU_NOT_ISOLATED', pool === 'isolated' ? notKernelIsolated() : CpuSet.EMPTY, 'no longer isolated'],
  ];
  return cases
    .filter(([, cpus]) => !cpus.isEmpty)
    .map(([code, cpus, what]) => Object.freeze({ code, message: `${theseAre(cpus)} ${what}`, cpus }));
}

function moveText({ before, now }: CpuMove): string {
  const levels = { core: 'core', package: 'package', node: 'NUMA node' } as const;
  return (Object.keys(levels) as (keyof typeof levels)[])
    .filter((level) => before[level] !== now[level])
    .map((level) => `${levels[level]} ${before[level]}, now ${now[level]}`)
    .join('; ');
}

function moveFlags(pod: PodAssignment, state: Assignments, topology: Topology): CpuMoved[] {
  const moves = movedCpus(pod, state, topology);
  const [first] = moves;
  if (!first) return [];
  const cpus = CpuSet.from(moves.map(({ cpu }) => cpu));
  const message = `${theseAre(cpus)} not where they were granted (CPU ${first.cpu}: ${moveText(first)})`;
  return [Object.freeze({ code: 'CPU_MOVED', message, cpus, moves: Object.freeze(moves) })];
}

function memoryFlags(
  blocks: readonly MemoryBlock[],
  { memory, settings }: Assignments,
  topology: Topology,
): MemoryGone[] {
  // Nodes that share memory count together: how the booking is split among them means nothing.
  return blocks.flatMap(({ nodes, type, bytes }): MemoryGone[] => {
    const gone = nodes.filter((id) => !topology.numaNodes.includes(id));
    const there = topology.nodes.filter(({ id }) => nodes.includes(id));
    const booked = nodes.reduce((all, id) => all + bookedOn(memory, id, type), 0);
    const allocatable = there.reduce((all, node) => all + allocatableOn(node, type, settings), 0);
    const isShort = isMemoryKnown(topology) && booked > allocatable;
    if (gone.length === 0 && !isShort) return [];
    const reasons = [
      ...(gone.length > 0 ? [`NUMA node${gone.length > 1 ? 's' : ''} ${NodeSet.from(gone)} missing`] : []),
      ...(isShort
        ? [`${formatBytes(booked)} granted there, but only ${formatBytes(allocatable)} allocatable`]
        : []),
    ];
    const message = `${formatBytes(bytes)} of ${type} on NUMA node${nodes.length > 1 ? 's' : ''} ${NodeSet.from(nodes)}: ${reasons.join('; ')}`;
    const facts = { resource: type, nodes, gone, bytes, booked, allocatable };
    return [Object.freeze({ code: 'MEMORY_GONE', message, ...facts })];
  });
}

// Registered devices are taken at their word. Of unregistered resources, the machine shows at least
// PCI devices, if it shows any.
function deviceFlags(pod: PodAssignment, topology: Topology, resources: DeviceResources): DeviceGone[] {
  return Object.entries(devicesOf(pod)).flatMap(([resource, held]): DeviceGone[] => {
    const registered = resources.get(resource)?.devices;
    const candidates = registered ?? topology.devices;
    const isChecked = (id: string) =>
      registered !== undefined || (candidates.length > 0 && PCI_ADDRESS.test(id));
    const ids = held.map(({ id }) => id).filter(isChecked);
    const gone = ids.filter((id) => !candidates.some((device) => device.id === id));
    const ill = ids.filter((id) => registered?.some((device) => device.id === id && !device.healthy));
    if (gone.length + ill.length === 0) return [];
    const parts = [
      ...(gone.length > 0 ? [`${gone.join(', ')} missing`] : []),
      ...(ill.length > 0 ? [`${ill.join(', ')} unhealthy`] : []),
    ];
    return [
      Object.freeze({
        code: 'DEVICE_GONE',
        message: `${resource}: ${parts.join('; ')}`,
        resource,
        gone,
        ill,
      }),
    ];
  });
}
