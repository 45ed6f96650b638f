// The memory of NUMA nodes by type, and how much of it is taken. Pure.
import type { Assignments, MachineSettings } from '../../account/assignments.js';
import { type BookedMemory, bookedOn, NOTHING_BOOKED, type TotalOn } from '../../account/booked-memory.js';
import { type KubeletRecord, kubeletMemory } from '../../account/kubelet-record.js';
import { groupsOfPods } from '../../account/memory-of-pods.js';
import { oncePer, oncePerLast } from '../../base/collections/once-per.js';
import { hugepageType, MEMORY } from '../../input/values/memory-types.js';
import { MAX_HINT_NODES } from '../../machine/hint-masks.js';
import type { NumaNode } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../draft/draft.js';
import { bookedIn, type KernelHugepages, type MemoryDraft } from '../draft/memory-draft.js';

/**
 * The memory of one type on one NUMA node, in bytes. `total` of ordinary memory excludes hugepages.
 * It is `free` + `reserved` + `systemReserved`, unless more is granted than the node has now.
 */
export interface MemoryTable {
  /** The id of the NUMA node. */
  readonly node: number;
  /** `memory`, or a hugepage type like `hugepages-2Mi`. */
  readonly type: string;
  /** Bytes that the node has. */
  readonly total: number;
  /** Bytes that {@link MachineOptions.reservedMemory} keeps from grants. */
  readonly systemReserved: number;
  /** `total` less `systemReserved`: what grants can have. */
  readonly allocatable: number;
  /** Booked by grants, and by the kubelet's pods on record. */
  readonly reserved: number;
  /**
   * Bytes that can still be granted: `allocatable` less `reserved`, at least 0. Used memory counts
   * as free.
   */
  readonly free: number;
  /** The nodes whose memory is allocated together with this one's; only this node if none are. */
  readonly group: readonly number[];
}

const typesOn = oncePer(({ memoryBytes, hugepages }: NumaNode): ReadonlyMap<string, number> => {
  const pools = hugepages.map(({ bytes, count }): [string, number] => [hugepageType(bytes), bytes * count]);
  const inPages = pools.reduce((sum, [, bytes]) => sum + bytes, 0);
  return new Map([[MEMORY, Math.max(0, memoryBytes - inPages)], ...pools]);
});

/** The bytes of a type on a node. */
export function totalOn(node: NumaNode, type: string): number {
  return typesOn(node).get(type) ?? 0;
}

/**
 * Returns the bytes of a type on a node of the machine; 0 for a node that it does not have. The
 * same function for the same machine.
 */
export const totalsOf = oncePer(
  ({ nodes }: Topology): TotalOn =>
    (id, type) => {
      const node = nodes.find((each) => each.id === id);
      return node ? totalOn(node, type) : 0;
    },
);

/** What the kubelet's pods take from each node of a machine. */
export function takenByKubelet(kubelet: KubeletRecord | null, topology: Topology): BookedMemory {
  return kubelet === null ? NOTHING_BOOKED : kubeletMemory(kubelet, totalsOf(topology));
}

/** The bytes of a type on a node that grants can have. */
export function allocatableOn(node: NumaNode, type: string, { reservedMemory }: MachineSettings): number {
  return Math.max(0, totalOn(node, type) - bookedOn(reservedMemory, node.id, type));
}

/** The account of every NUMA node by memory type. */
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
 * True if the machine's description has memory, and the machine is small enough for masks of nodes.
 */
export function isMemoryKnown({ nodes }: Topology): boolean {
  return nodes.length <= MAX_HINT_NODES && nodes.some(({ memoryBytes }) => memoryBytes > 0);
}

/** The memory of one type by position of the NUMA node, in bytes. */
export interface MemoryRow {
  readonly allocatable: readonly number[];
  readonly free: readonly number[];
}

// Machines have few types of memory; pods can request any name.
const MOST_TYPES = 16;

// By type: of settings what can be allocated, of what is booked what is free. For the last machine.
const allocatableOf = oncePerLast(
  (_of: MachineSettings, _on: Topology) => new Map<string, readonly number[]>(),
);
const rowsOf = oncePerLast((_of: Assignments | MemoryDraft, _on: Topology) => new Map<string, MemoryRow>());

function keep<Row>(rows: Map<string, Row>, type: string, row: Row): Row {
  if (rows.size >= MOST_TYPES) rows.clear();
  rows.set(type, row);
  return row;
}

/**
 * The memory of a type for the container that is placed. With `bytes`, for a request of this size:
 * nothing is free if all nodes together have less.
 */
export function memoryRow(draft: Draft, type: string, bytes = 0): MemoryRow {
  const { topology, state, memory, hugepages } = draft;
  // Shared by all pods that are placed on one state.
  const rows = rowsOf(memory.containers.length === 0 ? state : memory, topology);
  const row = rows.get(type) ?? keep(rows, type, findRow(topology, state, bookedIn(state, memory), type));
  const kernel = hugepages?.get(type);
  return kernel ? lesserOf(draft, row, { type, bytes }, kernel) : row;
}

// The minimum of three amounts: the record's, the kernel's on the node, and the kernel's unreserved
// amount. Other processes may use free pages, and booked pages may not be in use yet. None of the
// three counts what the pod has taken so far, which is subtracted.
function lesserOf(
  { topology, state, memory }: Draft,
  { allocatable, free }: MemoryRow,
  { type, bytes }: { readonly type: string; readonly bytes: number },
  { byNode, unreserved = Number.POSITIVE_INFINITY }: KernelHugepages,
): MemoryRow {
  const booked = bookedIn(state, memory);
  const takenByPod = topology.numaNodes.map(
    (node) => bookedOn(booked, node, type) - bookedOn(state.memory, node, type),
  );
  const most = takenByPod.reduce((left, taken) => left - taken, unreserved);
  const reusable = memory.reusable.reduce((sum, block) => sum + (block.type === type ? block.bytes : 0), 0);
  if (bytes > most + reusable) return { allocatable, free: takenByPod.map(() => 0) };
  const left = takenByPod.map((taken, i) =>
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
  const rows = allocatableOf(settings, topology);
  const allocatable =
    rows.get(type) ??
    keep(
      rows,
      type,
      topology.nodes.map((node) => allocatableOn(node, type, settings)),
    );
  const taken = takenByKubelet(kubelet, topology);
  const freeOf = (id: number, i: number) =>
    Math.max(0, allocatable[i]! - bookedOn(booked, id, type) - bookedOn(taken, id, type));
  return { allocatable, free: topology.nodes.map(({ id }, i) => freeOf(id, i)) };
}
