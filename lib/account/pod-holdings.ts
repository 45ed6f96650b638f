// The holdings of a pod on record, over all of its containers. Pure.
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { MemoryBlock } from './booked-memory.js';
import type {
  DeviceAssignment,
  PlaceCpus,
  PodAssignment,
  RecordedMove,
  UpcomingCpus,
} from './pod-assignment.js';

/** What is kept from others for one pod. */
export interface Holding {
  /** All its exclusive CPUs, with those that it keeps idle (`held`). */
  readonly cpus: CpuSet;
  /** A block for each type and set of NUMA nodes. */
  readonly memory: readonly MemoryBlock[];
  /** By resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** The CPUs and memory of a pod. */
export type Booked = Pick<PodAssignment, 'booking' | 'containers'>;

/** The CPUs that only a pod's containers run on. */
export function runningCpus({ booking, containers }: Booked): CpuSet {
  if (booking) return booking.cpus;
  return containers.reduce((cpus, container) => cpus.union(container.cpus), CpuSet.EMPTY);
}

/**
 * For a grant with parts: the container with the CPUs of no part, after those of the parts. No
 * container of a pod can have this name.
 */
export const SHARED_CONTAINER = '.shared';

/** True for a grant with parts: groups of the process's threads have separate CPUs. */
export function hasParts({ containers }: Pick<PodAssignment, 'containers'>): boolean {
  return containers.at(-1)?.name === SHARED_CONTAINER;
}

/** CPUs for some threads of a grant: those of a part, or of no part (`part` ''). */
export interface ThreadShare {
  readonly part: string;
  readonly cpus: CpuSet;
}

/** The CPUs of a grant's threads: first those of no part, then the parts. */
export function threadShares(pod: Booked): readonly [ThreadShare, ...ThreadShare[]] {
  if (!hasParts(pod)) return [{ part: '', cpus: runningCpus(pod) }];
  const shares = pod.containers.map(({ name, cpus }) => ({ part: name, cpus }));
  return [{ part: '', cpus: shares.at(-1)!.cpus }, ...shares.slice(0, -1)];
}

/** All CPUs that a pod has now: running, held, and kept for its later containers. */
export function presentCpus({ booking, containers }: Booked): CpuSet {
  if (booking) return booking.cpus.union(booking.held);
  let cpus = CpuSet.EMPTY;
  for (const { cpus: running, held, reusable } of containers)
    cpus = cpus.union(running).union(held).union(reusable.cpus);
  return cpus;
}

/** A pod whose move is announced, or has begun. Until it is done, the pod holds two places. */
export type MovingPod = PodAssignment & { readonly upcoming: UpcomingCpus & { readonly move: RecordedMove } };

export const isMoving = (pod: PodAssignment): pod is MovingPod => pod.upcoming?.move !== undefined;

/** True if no change of a pod is under way. */
export const isSettled = ({ upcoming, transfer, formerOwner }: PodAssignment): boolean =>
  upcoming === null && transfer === null && formerOwner === null;

/** The CPUs that a pod has beside those of its containers, while a change is under way. */
export const secondPlace = ({ upcoming, former }: Pick<PodAssignment, 'upcoming' | 'former'>): PlaceCpus =>
  former ?? upcoming ?? NO_CPUS;

const NO_CPUS: PlaceCpus = { cpus: CpuSet.EMPTY, held: CpuSet.EMPTY };

/** The CPUs of the containers of a pod, as of a place. */
export const placeCpus = (pod: Booked): PlaceCpus => ({
  cpus: runningCpus(pod),
  held: presentCpus(pod).difference(runningCpus(pod)),
});

/** All CPUs of a place. */
export const allCpus = ({ cpus, held }: PlaceCpus): CpuSet => cpus.union(held);

/** All CPUs that a pod keeps from others: also those that a change under way brings or leaves. */
export function cpusOf(pod: Booked & Pick<PodAssignment, 'upcoming' | 'former'>): CpuSet {
  return presentCpus(pod).union(allCpus(secondPlace(pod)));
}

/** Everything that a pod keeps from others. */
export function holdingOf(pod: Booked & Pick<PodAssignment, 'upcoming' | 'former'>): Holding {
  return { cpus: cpusOf(pod), memory: memoryOf(pod), devices: devicesOf(pod) };
}

/** All memory booked for a pod, with a block for each type and set of nodes. */
export function memoryOf({ booking, containers }: Booked): readonly MemoryBlock[] {
  if (booking) return booking.memory;
  const blocks = containers.flatMap(({ memory }) => memory).filter(({ bytes }) => bytes > 0);
  const sums = new Map<string, MemoryBlock>();
  for (const { nodes, type, bytes } of blocks) {
    // Most pods have one block.
    const key = blocks.length === 1 ? '' : `${type} ${nodes}`;
    sums.set(key, { nodes, type, bytes: bytes + (sums.get(key)?.bytes ?? 0) });
  }
  return [...sums.values()];
}

/** The NUMA nodes of booked memory. */
export function nodesOf(blocks: readonly MemoryBlock[]): NodeSet {
  return NodeSet.from(blocks.flatMap(({ nodes, bytes }) => (bytes > 0 ? nodes : [])));
}

/** The NUMA nodes of the booked memory of a place; without booked memory, those of its CPUs. */
export function memoryNodesAt(topology: Topology, place: Booked): NodeSet {
  const booked = nodesOf(memoryOf(place));
  return booked.isEmpty ? topology.nodesOf(runningCpus(place)) : booked;
}

/**
 * The nodes of these blocks that memory is to come from first. The kernel takes the nearest of
 * several preferred nodes, which is that of the CPUs: those of a tier before DRAM are named alone.
 */
export function firstNodes({ nodes }: Topology, blocks: readonly MemoryBlock[]): NodeSet {
  const all = nodesOf(blocks);
  const tierOf = (id: number) => nodes.find((node) => node.id === id)?.tier ?? 'dram';
  const first = blocks[0] ? tierOf(blocks[0].nodes[0]!) : 'dram';
  return first === 'dram' ? all : NodeSet.from([...all].filter((id) => tierOf(id) === first));
}

const NO_DEVICES: Holding['devices'] = Object.freeze({});

/**
 * All devices of a pod by resource, without duplicates: later containers may have those of init
 * containers.
 */
export function devicesOf({ containers }: Pick<PodAssignment, 'containers'>): Holding['devices'] {
  if (containers.every(({ devices }) => Object.keys(devices).length === 0)) return NO_DEVICES;
  const all = new Map<string, Map<string, DeviceAssignment>>();
  for (const { devices } of containers) {
    for (const [resource, list] of Object.entries(devices)) {
      const byId = all.get(resource) ?? new Map();
      for (const device of list) byId.set(device.id, device);
      all.set(resource, byId);
    }
  }
  return Object.freeze(
    Object.fromEntries([...all].map(([resource, byId]) => [resource, [...byId.values()]])),
  );
}

/** The recorded option of a pod whose CPUs come from the isolated pool. */
export const ISOLATED_OPTION = 'isolated-cpus';

/** The recorded option of a pod that gets other CPUs when the kubelet takes some. */
export const MOVE_OPTION = 'move-when-taken';

/** True if a pod gets other CPUs for those that the kubelet takes. */
export const movesWhenTaken = ({ options }: Pick<PodAssignment, 'options'>): boolean =>
  options[MOVE_OPTION] === true;

/** The pool of a pod's exclusive CPUs. */
export function poolOf({ options }: Pick<PodAssignment, 'options'>): CpuPool {
  return options[ISOLATED_OPTION] ? 'isolated' : 'ordinary';
}

/** The source of a grant's exclusive CPUs: CPUs that are shared until granted, or isolated ones. */
export type CpuPool = 'ordinary' | 'isolated';
