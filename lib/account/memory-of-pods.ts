// The memory of all pods on record, summed up by groups of NUMA nodes that share it. Pure.
import { oncePer, oncePerLast } from '../base/collections/once-per.js';
import { type BookedMemory, type MemoryBlock, memoryBookings } from './booked-memory.js';
import type { PodAssignment } from './pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';

/** The allocations on one group of nodes. */
interface MemoryGroup {
  readonly nodes: readonly number[];
  readonly blocks: number;
  /** By type, in bytes. */
  readonly sums: Readonly<Record<string, number>>;
}

/** By the group's nodes, as text. */
type MemoryGroups = ReadonlyMap<string, MemoryGroup>;

const keyOf = (nodes: readonly number[]) => nodes.join(',');

function add(groups: MemoryGroups, pods: readonly PodAssignment[], sign: 1 | -1): MemoryGroups {
  // Pods that were read together share blocks.
  const times = new Map<MemoryBlock, number>();
  for (const pod of pods)
    for (const { memory } of memoryBookings(pod))
      for (const block of memory) times.set(block, (times.get(block) ?? 0) + sign);
  // Most pods have none.
  if (times.size === 0) return groups;
  const all = new Map(groups);
  for (const [block, count] of times) addBlocks(all, block, count);
  return all;
}

function addBlocks(
  groups: Map<string, MemoryGroup>,
  { nodes, type, bytes }: MemoryBlock,
  count: number,
): void {
  const key = keyOf(nodes);
  const group = groups.get(key);
  const blocks = (group?.blocks ?? 0) + count;
  if (blocks === 0) groups.delete(key);
  else {
    const sum = (group && Object.hasOwn(group.sums, type) ? group.sums[type]! : 0) + count * bytes;
    // A computed member of a literal never sets the prototype.
    groups.set(key, { nodes, blocks, sums: { ...group?.sums, [type]: sum } });
  }
}

const groupsOf = oncePerPods<MemoryGroups>(
  (pods) => add(new Map(), pods, 1),
  (earlier, changes) => add(add(earlier, podsBefore(changes), -1), podsAfter(changes), 1),
);

/** All memory of pods, with a block for each type and set of nodes. */
export const memoryOfPods = (pods: readonly PodAssignment[]): MemoryBlock[] =>
  [...groupsOf(pods).values()].flatMap(({ nodes, sums }) =>
    Object.entries(sums).flatMap(([type, bytes]) => (bytes > 0 ? [{ nodes, type, bytes }] : [])),
  );

const nodesIn = oncePer((groups: MemoryGroups): ReadonlyMap<number, readonly number[]> => {
  const byNode = new Map<number, readonly number[]>();
  for (const { nodes } of groups.values()) for (const node of nodes) byNode.set(node, nodes);
  return byNode;
});

/**
 * For each node with pods' memory, the nodes that it is allocated together with, itself included.
 */
export const groupsOfPods = (pods: readonly PodAssignment[]) => nodesIn(groupsOf(pods));

/**
 * Finds a contradiction in the record, if any: overlapping groups, or a sum that differs from the
 * blocks. The cost depends on the nodes, not on the pods.
 */
export const bookingFlaw = (booked: BookedMemory, pods: readonly PodAssignment[]): string | undefined =>
  flawIn(groupsOf(pods), booked);

// Most commits change no memory.
const flawIn = oncePerLast((groups: MemoryGroups, booked: BookedMemory): string | undefined => {
  const groupOf = new Map<number, readonly number[]>();
  const sums = new Map<string, number>();
  const addTo = (nodes: readonly number[], type: string, bytes: number) => {
    const key = `${type} of NUMA nodes ${keyOf(nodes)}`;
    sums.set(key, (sums.get(key) ?? 0) + bytes);
  };
  for (const { nodes, sums: bytesOf } of groups.values()) {
    for (const node of nodes) {
      const other = groupOf.get(node);
      if (other) return `memory is allocated on NUMA nodes ${keyOf(other)} together, and on ${keyOf(nodes)}`;
      groupOf.set(node, nodes);
    }
    for (const [type, bytes] of Object.entries(bytesOf)) addTo(nodes, type, bytes);
  }
  for (const [node, types] of Object.entries(booked)) {
    for (const [type, bytes] of Object.entries(types))
      addTo(groupOf.get(Number(node)) ?? [Number(node)], type, -bytes);
  }
  const [wrong] = [...sums].filter(([, difference]) => difference !== 0);
  return wrong && `the booked ${wrong[0]} differs from what the grants hold by ${Math.abs(wrong[1])} bytes`;
});
