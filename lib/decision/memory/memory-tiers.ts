// Tiers of memory: the NUMA nodes that a request books on. Memory of other tiers than DRAM counts
// as that of the nearest node with CPUs, so that hints and policies bring CPUs near it. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import { nodesOf } from '../../account/pod-holdings.js';
import { oncePer } from '../../base/collections/once-per.js';
import type { MemoryTier } from '../../base/native-tables.js';
import type { MemoryTiers } from '../../input/policies.js';
import { homes } from '../../machine/cpu-nodes.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import type { NumaNode } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../draft/draft.js';
import { groupsOf } from './memory-groups.js';
import type { MemoryRequest } from './memory-requests.js';
import { type MemoryRow, memoryRow } from './memory-tables.js';

const isOrdinary = (tiers: readonly MemoryTier[]) => tiers.length === 1 && tiers[0] === 'dram';

/** True if a decision books on nodes of tiers one by one, instead of as the kubelet does. */
export const isTiered = ({ placement: { memoryTiers: tiers } }: Draft): boolean =>
  tiers !== 'any' && !isOrdinary(tiers);

/** The nodes with memory of each tier that the machine has. */
export const nodesByTier = oncePer(({ nodes }: Topology): ReadonlyMap<MemoryTier, readonly NumaNode[]> => {
  const tiers = new Map<MemoryTier, NumaNode[]>();
  for (const node of nodes) {
    if (node.memoryBytes === 0) continue;
    const same = tiers.get(node.tier);
    if (same) same.push(node);
    else tiers.set(node.tier, [node]);
  }
  return tiers;
});

/**
 * The tiers to try, one list after the other: the first tier alone, then with the next. A grant that
 * changes keeps the memory that it has (`present`).
 */
export function tiersToTry(
  topology: Topology,
  tiers: MemoryTiers,
  present: readonly MemoryBlock[] = [],
): readonly MemoryTiers[] {
  if (tiers === 'any' || isOrdinary(tiers)) return [tiers];
  const there = tiers.filter((tier) => nodesByTier(topology).has(tier));
  const held = nodesOf(present);
  const needed = topology.nodes.filter(({ id }) => held.has(id)).map(({ tier }) => tier);
  const lists = there
    .map((_, i) => there.slice(0, i + 1))
    // Before DRAM overflows, it is also booked node by node: grants on one node keep others from groups.
    .flatMap((list) => (isOrdinary(list) ? [list, [...list, ...list]] : [list]))
    .filter((list) => needed.every((tier) => list.includes(tier)));
  return lists.length > 0 ? lists : [tiers];
}

/**
 * The memory of one type that hints are made of, by position of the NUMA node: that of the tiers in
 * question, and what a grant that changes has. With `bytes`, for a request of this size.
 */
export function offeredRow(draft: Draft, type: string, bytes = 0): MemoryRow {
  const { topology, placement } = draft;
  const row = memoryRow(draft, type, bytes);
  const { memoryTiers: tiers } = placement;
  if (tiers === 'any') return row;
  if (isTiered(draft)) return atHomes(draft, type, row);
  if (nodesByTier(topology).size <= 1) return row;
  const kept = nodesOf(draft.kept?.memory ?? []);
  const only = (amounts: readonly number[]) =>
    amounts.map((amount, at) => {
      const { id, tier } = topology.nodes[at]!;
      return tier === 'dram' || kept.has(id) ? amount : 0;
    });
  return { allocatable: only(row.allocatable), free: only(row.free) };
}

function atHomes(draft: Draft, type: string, { allocatable, free }: MemoryRow): MemoryRow {
  const zeros = () => new Array<number>(free.length).fill(0);
  const sums = { allocatable: zeros(), free: zeros() };
  draft.topology.nodes.forEach(({ tier }, at) => {
    if (!draft.placement.memoryTiers.includes(tier)) return;
    const home = homes(draft.topology)[at]!;
    sums.allocatable[home]! += allocatable[at]!;
    sums.free[home]! += usable(draft, type, at, free[at]!);
  });
  return sums;
}

// What a node has alone: with what init containers left, and nothing if it shares its memory.
function usable(draft: Draft, type: string, at: number, free: number): number {
  const { memory, topology, kept } = draft;
  const { id } = topology.nodes[at]!;
  const isAlone = ({ nodes }: MemoryBlock) => nodes.length === 1 && nodes[0] === id;
  const group = groupsOf(draft).get(id);
  const isShared =
    (group && group.length > 1) || kept?.memory.some((block) => block.nodes.includes(id) && !isAlone(block));
  if (isShared) return 0;
  return memory.reusable.reduce(
    (sum, block) => (block.type === type && isAlone(block) ? sum + block.bytes : sum),
    free,
  );
}

/**
 * The blocks of a request on the nodes of its tiers near `nodes`, each on one node: each tier is
 * filled before the next, and a single node of a tier that can hold the rest is taken first. A grant
 * that changes keeps what it has. Undefined if there is too little.
 */
export function blocksByTier(
  draft: Draft,
  { type, bytes }: MemoryRequest,
  nodes: NodeSet,
): readonly MemoryBlock[] | undefined {
  let left = bytes;
  const blocks: MemoryBlock[] = [];
  const take = (block: MemoryBlock) => {
    const taken = Math.min(left, block.bytes);
    left -= taken;
    if (taken === 0) return;
    const before = blocks.find((each) => String(each.nodes) === String(block.nodes));
    if (before) blocks[blocks.indexOf(before)] = { ...before, bytes: before.bytes + taken };
    else blocks.push({ ...block, bytes: taken });
  };
  for (const block of draft.kept?.memory ?? []) if (block.type === type) take(block);
  for (const tier of draft.placement.memoryTiers as readonly MemoryTier[]) {
    const rooms = roomsOf(draft, type, tier, nodes, blocks);
    const whole = rooms.find((room) => room.bytes >= left);
    for (const room of whole ? [whole] : rooms) take(room);
  }
  return left === 0 ? blocks : undefined;
}

function roomsOf(
  draft: Draft,
  type: string,
  tier: MemoryTier,
  near: NodeSet,
  taken: readonly MemoryBlock[],
): MemoryBlock[] {
  const { topology } = draft;
  const { free } = memoryRow(draft, type);
  return topology.nodes.flatMap(({ id, tier: own }, at) => {
    if (own !== tier || !near.has(topology.numaNodes[homes(topology)[at]!]!)) return [];
    const before = taken.find(({ nodes }) => nodes.length === 1 && nodes[0] === id)?.bytes ?? 0;
    const bytes = usable(draft, type, at, free[at]!) - before;
    return bytes > 0 ? [{ nodes: [id], type, bytes }] : [];
  });
}
