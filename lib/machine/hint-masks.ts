// Masks of hints: sets of a machine's NUMA nodes as 64-bit masks. Bit i is node i in the list of
// node ids.
import type { Words } from '../base/words.js';
import { NodeSet } from './cpu-set.js';
import { wordsOf } from './id-set.js';

/** The most NUMA nodes that hints support: a mask has 64 bits. */
export const MAX_HINT_NODES = 64;

// An unknown node becomes a position beyond the machine's nodes.
export function positions(nodes: Iterable<number>, numaNodes: readonly number[]): Words {
  return wordsOf(Array.from(nodes, (node) => positionOf(node, numaNodes)));
}

// If node ids are positions, a node set's words are its mask.
export function isDense(numaNodes: readonly number[]): boolean {
  return numaNodes[numaNodes.length - 1] === numaNodes.length - 1;
}

function positionOf(node: number, numaNodes: readonly number[]): number {
  if (numaNodes[node] === node) return node;
  const position = numaNodes.indexOf(node);
  return position >= 0 ? position : numaNodes.length;
}

/** The packed mask of some of the machine's nodes, [low, high]. Bit i is numaNodes[i]. */
export function maskOf(nodes: Iterable<number>, numaNodes: readonly number[]): [low: number, high: number] {
  let [low, high] = [0, 0];
  for (const node of nodes) {
    const position = positionOf(node, numaNodes);
    if (position < 32) low |= 1 << position;
    else if (position < MAX_HINT_NODES) high |= 1 << (position - 32);
  }
  return [low >>> 0, high >>> 0];
}

function positionsIn(mask: ArrayLike<number>, count: number): number[] {
  const found = [];
  for (let i = 0; i < count; i++) if ((mask[i >>> 5]! >>> (i & 31)) & 1) found.push(i);
  return found;
}

const firstBits = (count: number) => (count >= 32 ? ~0 : (1 << Math.max(count, 0)) - 1);

/** The nodes of a packed mask, [low, high]. Bit i is numaNodes[i]. */
export function nodesAt(mask: ArrayLike<number>, numaNodes: readonly number[]): NodeSet {
  const { length } = numaNodes;
  if (isDense(numaNodes)) {
    const high = mask[1]! & firstBits(length - 32);
    const words = new Uint32Array(high === 0 ? 1 : 2);
    words[0] = mask[0]! & firstBits(length);
    if (high !== 0) words[1] = high;
    return new NodeSet(words);
  }
  return NodeSet.from(positionsIn(mask, length).map((i) => numaNodes[i]!));
}
