// The account of a machine's memory, by NUMA node and type, as recorded or as observed, and the
// rules that it keeps.
import type { KubeletMemoryBlock } from '../../lib/entries/kubelet.js';
import type { MemoryBlock, MemoryTable } from '../../lib/index.js';
import { attempt, type Numalign } from './case.js';

/** A NUMA node as scenarios record it. */
export interface RecordedNumaNode {
  readonly id: number;
  /** In bytes, with what hugepages take. */
  readonly memory: number;
  readonly hugepages: readonly { readonly sizeKiB: number; readonly count: number }[];
  /** Bytes by type. */
  readonly reserved: Readonly<Record<string, number>>;
}

/** Bytes by NUMA node and memory type. */
export type BytesByNode = Readonly<Record<number, Readonly<Record<string, number>>>>;

/** A node's memory of a type, granted or not. */
export type Capacity = Pick<MemoryTable, 'node' | 'type' | 'total' | 'systemReserved' | 'allocatable'>;

/** As Kubernetes writes the size: 2048 KiB are `hugepages-2Mi`. */
export function hugepageType(sizeKiB: number): string {
  const units = ['Ki', 'Mi', 'Gi', 'Ti'];
  let [size, unit] = [sizeKiB, 0];
  while (size % 1024 === 0 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `hugepages-${size}${units[unit]}`;
}

export function capacitiesOf(nodes: readonly RecordedNumaNode[]): Capacity[] {
  return nodes.flatMap(({ id, memory, hugepages, reserved }) => {
    const pools = hugepages.map(({ sizeKiB, count }) => ({
      type: hugepageType(sizeKiB),
      total: sizeKiB * 1024 * count,
    }));
    const plain = memory - pools.reduce((sum, { total }) => sum + total, 0);
    return [{ type: 'memory', total: plain }, ...pools].map(({ type, total }) => {
      const systemReserved = reserved[type] ?? 0;
      return { node: id, type, total, systemReserved, allocatable: total - systemReserved };
    });
  });
}

/** The nodes that each node's memory is allocated with; undefined if two such groups overlap. */
export function groupsOfNodes(blocks: readonly MemoryBlock[]): Map<number, readonly number[]> | undefined {
  const groups = new Map<number, readonly number[]>();
  for (const { nodes } of blocks) {
    for (const node of nodes) {
      if ((groups.get(node) ?? nodes).join() !== nodes.join()) return undefined;
      groups.set(node, nodes);
    }
  }
  return groups;
}

type Bytes = Readonly<Record<string, number>>;

/** Nodes that are given away together, or could be, and what is free on them by type. */
interface Place {
  readonly nodes: readonly number[];
  readonly free: Bytes;
}

/** Where memory can be had: on a group, or on nodes outside of groups, in any combination. */
interface Places {
  readonly groups: readonly Place[];
  readonly others: readonly Place[];
}

function together(places: readonly Place[]): Place {
  const free: Record<string, number> = {};
  for (const place of places)
    for (const [type, bytes] of Object.entries(place.free)) free[type] = (free[type] ?? 0) + bytes;
  return { nodes: places.flatMap(({ nodes }) => nodes), free };
}

export function placesOf(free: BytesByNode, groups: ReadonlyMap<number, readonly number[]>): Places {
  const single = Object.entries(free).map(([node, bytes]) => ({ nodes: [Number(node)], free: bytes }));
  const groupsOnce = new Map([...groups.values()].map((nodes) => [nodes.join(), nodes]));
  return {
    groups: [...groupsOnce.values()].map((nodes) =>
      together(single.filter((place) => nodes.includes(place.nodes[0]!))),
    ),
    others: single.filter((place) => !groups.has(place.nodes[0]!)),
  };
}

const holds = ({ free }: Place, memory: Bytes) =>
  Object.entries(memory).every(([type, bytes]) => (free[type] ?? 0) >= bytes);

const subsetsOf = <T>(list: readonly T[]): T[][] =>
  Array.from({ length: 2 ** list.length }, (_, bits) => list.filter((_each, i) => bits & (1 << i)));

/** Every way to give this memory away. What an init container has is reused: it still counts as free. */
function afterGiving(
  { groups, others }: Places,
  { memory, kind }: Wanted,
  isOnOneNode: boolean,
): readonly Places[] {
  const give = ({ nodes, free }: Place): Place => {
    if (kind === 'init') return { nodes, free };
    const left = Object.entries(free).map(([type, bytes]) => [type, bytes - (memory[type] ?? 0)] as const);
    return { nodes, free: Object.fromEntries(left) };
  };
  const isUsable = (place: Place) =>
    place.nodes.length > 0 && (!isOnOneNode || place.nodes.length === 1) && holds(place, memory);
  const onGroup = groups.flatMap((group, i) =>
    isUsable(group) ? [{ groups: groups.with(i, give(group)), others }] : [],
  );
  const choices = isOnOneNode ? others.map((place) => [place]) : subsetsOf(others);
  const onOthers = choices.flatMap((some) => {
    const group = together(some);
    const rest = others.filter((place) => !some.includes(place));
    return isUsable(group) ? [{ groups: [...groups, give(group)], others: rest }] : [];
  });
  return [...onGroup, ...onOthers];
}

/** Memory that is asked for at one time. */
interface Wanted {
  readonly memory: Bytes;
  readonly kind?: 'init' | 'sidecar' | 'app';
}

const MOST_STATES = 4096;

/**
 * D1: no nodes have the memory of one of these, wherever those before it are placed. False also where
 * there are too many ways to tell.
 */
export function isNowhere(wanted: readonly Wanted[], places: Places, isOnOneNode: boolean): boolean {
  let states: readonly Places[] = [places];
  for (const each of wanted) {
    if (Object.keys(each.memory).length === 0) continue;
    const isHeld = ({ groups, others }: Places) =>
      [...groups, together(others)].some((place) => holds(place, each.memory));
    if (!states.some(isHeld)) return true;
    if (states.length * 2 ** states[0]!.others.length > MOST_STATES) return false;
    const next = states.flatMap((state) => afterGiving(state, each, isOnOneNode));
    if (next.length === 0) return false;
    states = [...new Map(next.map((state) => [JSON.stringify(state), state])).values()];
  }
  return false;
}

/** The account with this much free. A type that `free` does not name is completely free. */
export function tablesOf(
  capacities: readonly Capacity[],
  free: BytesByNode,
  blocks: readonly MemoryBlock[],
): MemoryTable[] {
  const groups = groupsOfNodes(blocks);
  return capacities.map((capacity) => {
    const { node, type, allocatable } = capacity;
    const left = free[node]?.[type] ?? allocatable;
    return { ...capacity, reserved: allocatable - left, free: left, group: groups?.get(node) ?? [node] };
  });
}

/** One column of the account. */
export function column(tables: readonly MemoryTable[], name: 'free' | 'reserved'): BytesByNode {
  const bytes: Record<number, Record<string, number>> = {};
  for (const table of tables) bytes[table.node] = { ...bytes[table.node], [table.type]: table[name] };
  return sorted(bytes);
}

/** What is booked, as state files have it: without zeros. */
export function bookedOf(tables: readonly MemoryTable[]): BytesByNode {
  return column(
    tables.filter(({ reserved }) => reserved !== 0),
    'reserved',
  );
}

/** The same amounts in the order of their types; JavaScript itself keeps whole numbers in order. */
export function sorted(bytes: BytesByNode): BytesByNode {
  const byType = (types: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(types).sort(([a], [b]) => (a < b ? -1 : 1)));
  return Object.fromEntries(Object.entries(bytes).map(([node, types]) => [node, byType(types)]));
}

function inOrder<Row extends Capacity>(rows: readonly Row[]): Row[] {
  return [...rows].sort((a, b) => a.node - b.node || (a.type < b.type ? -1 : 1));
}

const capacityText = (rows: readonly Capacity[]) =>
  JSON.stringify(
    inOrder(rows).map((row) => [row.node, row.type, row.total, row.systemReserved, row.allocatable] as const),
  );

export function isSameMemory(a: readonly MemoryTable[], b: readonly MemoryTable[]): boolean {
  const text = (tables: readonly MemoryTable[]) =>
    capacityText(tables) +
    JSON.stringify(inOrder(tables).map(({ reserved, free, group }) => [reserved, free, group]));
  return text(a) === text(b);
}

/** The rule that an account breaks besides the blocks of allocated memory, if any. */
export function flawOfMemory(
  tables: readonly MemoryTable[],
  blocks: readonly MemoryBlock[],
  capacities: readonly Capacity[],
): string | undefined {
  if (capacityText(tables) !== capacityText(capacities)) {
    return `the machine is said to have the memory ${capacityText(tables)} instead of ${capacityText(capacities)}`;
  }
  const groups = groupsOfNodes(blocks);
  if (!groups) return `the NUMA nodes of two memory blocks overlap: ${JSON.stringify(blocks)}`;
  const booked = new Map<string, number>();
  const add = (nodes: readonly number[], type: string, bytes: number) => {
    const key = `${type} of NUMA nodes ${nodes.join()}`;
    booked.set(key, (booked.get(key) ?? 0) + bytes);
  };
  for (const { node, type, total, systemReserved, allocatable, reserved, free, group } of tables) {
    const where = `${type} of NUMA node ${node}`;
    if (reserved < 0 || reserved > allocatable)
      return `${reserved} bytes are booked of ${allocatable} of ${where}`;
    if (free + reserved + systemReserved !== total)
      return `${where}: free and reserved bytes are not all of them`;
    const own = groups.get(node) ?? [node];
    if (group.join() !== own.join())
      return `${where} is said to be given away with ${group}, the blocks say ${own}`;
    add(own, type, reserved);
  }
  for (const { nodes, type, bytes } of blocks) add(nodes, type, -bytes);
  const wrong = [...booked].find(([, difference]) => difference !== 0);
  return wrong && `${wrong[0]}: booked are ${wrong[1]} bytes more than the blocks hold`;
}

/**
 * A file of the Memory Manager with the blocks of each container in order of their types: upstream
 * writes them in the order of a map.
 */
export function memoryFileInOrder(
  text: string,
  { parseMemoryManagerState, formatMemoryManagerState }: Numalign,
): string {
  const older = attempt(() => parseMemoryManagerState(text));
  const parsed =
    'value' in older ? older.value : parseMemoryManagerState(text, { podLevelResourceManagers: true });
  // Nothing but the order may differ.
  if (formatMemoryManagerState(parsed) !== text) throw new Error('it is not as upstream writes it');
  const byType = (blocks: readonly KubeletMemoryBlock[]) =>
    [...blocks].sort((a, b) => (a.type < b.type ? -1 : 1));
  const entries = [...parsed.entries].map(([uid, containers]) => {
    const sorted = [...containers].map(([name, blocks]) => [name, byType(blocks)] as const);
    return [uid, new Map(sorted)] as const;
  });
  return formatMemoryManagerState({ ...parsed, entries: new Map(entries) });
}
