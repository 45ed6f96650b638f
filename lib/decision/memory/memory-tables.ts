// What NUMA nodes have of each type of memory, and what of it is taken. Pure.
import type { Assignments, MachineSettings } from '../../account/assignments.js';
import { type BookedMemory, bookedOn, NOTHING_BOOKED, type TotalOn } from '../../account/booked-memory.js';
import { type KubeletRecord, kubeletMemory } from '../../account/kubelet-record.js';
import { groupsOfPods } from '../../account/memory-of-pods.js';
import { withLast } from '../../base/collections/lists.js';
import { hugepageType, MEMORY } from '../../input/values/memory-types.js';
import { MAX_HINT_NODES } from '../../machine/hint-masks.js';
import type { NumaNode } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';
import type { KernelHugepages, MemoryDraft, MemoryGround } from './memory-draft.js';

/**
 * What one NUMA node has of one type of memory, in bytes. `total` of ordinary memory leaves out
 * what hugepages take, and is `free` + `reserved` + `systemReserved`, unless more is granted than
 * the node has by now.
 */
export interface MemoryTable {
  readonly node: number;
  /** `memory`, or a hugepage type such as `hugepages-2Mi`. */
  readonly type: string;
  readonly total: number;
  readonly systemReserved: number;
  /** `total` less `systemReserved`: what grants can have. */
  readonly allocatable: number;
  /** What grants have, and the kubelet's pods where they are on record. */
  readonly reserved: number;
  readonly free: number;
  /** The nodes whose memory is allocated together with this one's; the node alone where none is. */
  readonly group: readonly number[];
}

// A cache: asked for again and again, and never different.
const totals = new WeakMap<NumaNode, ReadonlyMap<string, number>>();

function typesOn(node: NumaNode): ReadonlyMap<string, number> {
  const known = totals.get(node);
  if (known) return known;
  const { memoryBytes, hugepages } = node;
  const pools = hugepages.map(({ bytes, count }): [string, number] => [hugepageType(bytes), bytes * count]);
  const inPages = pools.reduce((sum, [, bytes]) => sum + bytes, 0);
  const found = new Map([[MEMORY, Math.max(0, memoryBytes - inPages)], ...pools]);
  totals.set(node, found);
  return found;
}

/** What a node has of a type. */
export function totalOn(node: NumaNode, type: string): number {
  return typesOn(node).get(type) ?? 0;
}

const totalsKnown = new WeakMap<Topology, TotalOn>();

/**
 * What each node of a machine has of a type; nothing where it has no such node. The same function
 * for the same machine.
 */
export function totalsOf(topology: Topology): TotalOn {
  let known = totalsKnown.get(topology);
  if (!known) {
    known = (id, type) => {
      const node = topology.nodes.find((each) => each.id === id);
      return node ? totalOn(node, type) : 0;
    };
    totalsKnown.set(topology, known);
  }
  return known;
}

/** What the kubelet's pods take from each node of a machine. */
export function takenByKubelet(kubelet: KubeletRecord | null, topology: Topology): BookedMemory {
  return kubelet === null ? NOTHING_BOOKED : kubeletMemory(kubelet, totalsOf(topology));
}

/** What grants can have of a type on a node. */
export function allocatableOn(node: NumaNode, type: string, { reservedMemory }: MachineSettings): number {
  return Math.max(0, totalOn(node, type) - bookedOn(reservedMemory, node.id, type));
}

/** The account of every NUMA node and type of memory that it has. */
export function memoryTables(state: Assignments, topology: Topology): MemoryTable[] {
  const { settings, memory, pods, kubelet } = state;
  const groups = groupsOfPods(pods);
  const taken = takenByKubelet(kubelet, topology);
  return topology.nodes.flatMap((node) =>
    Array.from(typesOn(node), ([type, total]) => {
      const allocatable = allocatableOn(node, type, settings);
      const reserved = bookedOn(memory, node.id, type) + bookedOn(taken, node.id, type);
      return {
        node: node.id,
        type,
        total,
        systemReserved: total - allocatable,
        allocatable,
        reserved,
        free: Math.max(0, allocatable - reserved),
        group: groups.get(node.id) ?? [node.id],
      };
    }),
  );
}

/**
 * Whether a machine's description says anything of memory, and sets of its nodes can be told apart.
 */
export function isMemoryKnown({ nodes }: Topology): boolean {
  return nodes.length <= MAX_HINT_NODES && nodes.some(({ memoryBytes }) => memoryBytes > 0);
}

/** What each NUMA node has of a type of memory, by its position, in bytes. */
export interface MemoryRow {
  readonly allocatable: readonly number[];
  readonly free: readonly number[];
}

// Machines have few types of memory, whatever pods ask for.
const MOST_TYPES = 16;

interface TypedRows<Row> {
  readonly topology: Topology;
  rows: readonly { readonly type: string; readonly row: Row }[];
}

// By what never changes, and the machine that was asked about last.
function oncePerType<Of extends object, Row, More extends unknown[] = []>(
  find: (of: Of, topology: Topology, type: string, ...more: More) => Row,
): (of: Of, topology: Topology, type: string, ...more: More) => Row {
  const known = new WeakMap<Of, TypedRows<Row>>();
  return (of, topology, type, ...more) => {
    let all = known.get(of);
    if (all?.topology !== topology) {
      all = { topology, rows: [] };
      known.set(of, all);
    }
    for (const each of all.rows) if (each.type === type) return each.row;
    const row = find(of, topology, type, ...more);
    all.rows = withLast(all.rows.length < MOST_TYPES ? all.rows : [], { type, row });
    return row;
  };
}

const allocatableRow = oncePerType((settings: MachineSettings, { nodes }, type) =>
  nodes.map((node) => allocatableOn(node, type, settings)),
);

// The same for all pods that are placed on a state.
const rowOn = oncePerType((state: Assignments, topology, type) =>
  findRow(topology, state, state.memory, type),
);

// Beside the containers before it.
const rowBeside = oncePerType((memory: MemoryDraft, topology, type, state: Assignments) =>
  findRow(topology, state, memory.booked(), type),
);

/**
 * What there is of a type for a container that is placed; with `bytes`, for a request of so many:
 * none is free anywhere where all nodes together have fewer.
 */
export function memoryRow(ground: MemoryGround, type: string, bytes = 0): MemoryRow {
  const { topology, state, memory, hugepages } = ground;
  const row =
    memory.containers.length === 0 ? rowOn(state, topology, type) : rowBeside(memory, topology, type, state);
  const kernel = hugepages?.get(type);
  return kernel ? lesserOf(ground, row, type, kernel, bytes) : row;
}

// The least of what is on record, what the kernel has on the node, and what it has promised nobody:
// others may use the one, and nobody yet what the other says is booked. What the pod has taken so far
// is in none of them.
function lesserOf(
  { topology, state, memory }: MemoryGround,
  { allocatable, free }: MemoryRow,
  type: string,
  { byNode, unreserved = Number.POSITIVE_INFINITY }: KernelHugepages,
  bytes: number,
): MemoryRow {
  const booked = memory.booked();
  const own = topology.numaNodes.map(
    (node) => bookedOn(booked, node, type) - bookedOn(state.memory, node, type),
  );
  const most = own.reduce((left, taken) => left - taken, unreserved);
  const reusable = memory.reusable.reduce((sum, block) => sum + (block.type === type ? block.bytes : 0), 0);
  if (bytes > most + reusable) return { allocatable, free: own.map(() => 0) };
  const left = own.map((taken, i) =>
    Math.max(0, Math.min(free[i]!, (byNode[i] ?? Number.POSITIVE_INFINITY) - taken, most)),
  );
  return { allocatable, free: left };
}

function findRow(
  topology: Topology,
  { settings, kubelet }: Assignments,
  booked: BookedMemory,
  type: string,
): MemoryRow {
  const allocatable = allocatableRow(settings, topology, type);
  const taken = takenByKubelet(kubelet, topology);
  const freeOf = (id: number, i: number) =>
    Math.max(0, allocatable[i]! - bookedOn(booked, id, type) - bookedOn(taken, id, type));
  return { allocatable, free: topology.nodes.map(({ id }, i) => freeOf(id, i)) };
}
