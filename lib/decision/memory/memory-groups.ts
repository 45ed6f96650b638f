// The NUMA nodes whose memory is allocated together. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import { groupsOfPods } from '../../account/memory-of-pods.js';
import { maskOf } from '../../machine/hint-masks.js';
import type { MemoryGround } from './memory-draft.js';

/** Whether two lists, both ascending, are of the same nodes. */
export const isSame = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((node, i) => node === b[i]);

type Groups = ReadonlyMap<number, readonly number[]>;

export const groupsOf = ({ state, memory }: MemoryGround): Groups =>
  memory.groups ?? groupsOfPods(state.pods);

/** With what a container was given. */
export function groupsWith(groups: Groups, given: readonly MemoryBlock[]): Groups {
  // Most are given memory of nodes that are grouped so already.
  let next: Map<number, readonly number[]> | undefined;
  for (const { nodes } of given) {
    for (const node of nodes) {
      const known = (next ?? groups).get(node);
      if (known && isSame(known, nodes)) continue;
      next ??= new Map(groups);
      next.set(node, nodes);
    }
  }
  return next ?? groups;
}

/** Groups as the core asks for them. */
interface GroupMasks {
  readonly numaNodes: readonly number[];
  /** By node, low and high; empty where it is in no group. */
  readonly words: readonly number[];
  /** By node whether its group takes nothing more. */
  readonly closed: readonly boolean[];
}

// Of groups on record, which many pods are placed beside.
const masksOfGroups = new WeakMap<Groups, GroupMasks>();

export function groupMasks(groups: Groups, numaNodes: readonly number[]): GroupMasks {
  let masks = masksOfGroups.get(groups);
  if (masks?.numaNodes !== numaNodes) {
    const isThere = (node: number) => numaNodes.includes(node);
    masks = {
      numaNodes,
      words: numaNodes.flatMap((node) => maskOf(groups.get(node)?.filter(isThere) ?? [], numaNodes)),
      // A group that has lost a node is to be as it was when the node comes back.
      closed: numaNodes.map((node) => groups.get(node)?.every(isThere) === false),
    };
    masksOfGroups.set(groups, masks);
  }
  return masks;
}
