// The NUMA nodes whose memory is allocated together. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import { groupsOfPods } from '../../account/memory-of-pods.js';
import { oncePerLast } from '../../base/collections/once-per.js';
import { maskOf } from '../../machine/hint-masks.js';
import type { Draft } from '../draft/draft.js';

/** True if two ascending lists have the same nodes. */
export const isSame = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((node, i) => node === b[i]);

type Groups = ReadonlyMap<number, readonly number[]>;

export const groupsOf = ({ state, memory }: Draft): Groups => memory.groups ?? groupsOfPods(state.pods);

/** The groups after a container got these blocks. */
export function groupsWith(groups: Groups, blocks: readonly MemoryBlock[]): Groups {
  // Most blocks are on nodes that already form this group.
  let next: Map<number, readonly number[]> | undefined;
  for (const { nodes } of blocks) {
    for (const node of nodes) {
      const group = (next ?? groups).get(node);
      if (group && isSame(group, nodes)) continue;
      next ??= new Map(groups);
      next.set(node, nodes);
    }
  }
  return next ?? groups;
}

const NO_MASKS = { words: [], closed: [] };

/** Groups in the form that the core expects. Many pods are placed beside the same ones. */
export const groupMasks = oncePerLast((groups: Groups, numaNodes: readonly number[]) => {
  if (groups.size === 0) return NO_MASKS;
  const isThere = (node: number) => numaNodes.includes(node);
  return {
    /** By node, the low and high half of its group's mask; zero without a group. Empty: all are zero. */
    words: numaNodes.flatMap((node) => maskOf(groups.get(node)?.filter(isThere) ?? [], numaNodes)),
    /**
     * The nodes whose group takes no more: a group that lost a node must be unchanged when the node
     * comes back.
     */
    closed: maskOf(
      numaNodes.filter((node) => groups.get(node)?.every(isThere) === false),
      numaNodes,
    ),
  };
});
