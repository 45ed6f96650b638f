// How the core writes a family of hints into words, and what can be read from them without a list.
import type { Words } from '../base/words.js';
import { NodeSet } from './cpu-set.js';
import { popcount, wordsOf } from './id-set.js';

// As in native/core/hint_family.h.
export const LIST = 0;
export const BITS = 1;
export const ANY_PREFERRED = 1 << 8;
export const ANY_OTHER = 1 << 9;
export const LIST_HEADER = 3;
export const BITS_HEADER = 2;
const LINEAR_HEADER = 10;
export const WORDS_PER_HINT = 3;
// Some milliseconds.
export const STEPS_TO_FIRST = 20_000;

/** Work that may still be done. */
export interface Budget {
  steps: number;
}

interface ListedMask {
  /** Ascending. */
  readonly positions: readonly number[];
  readonly preferred: boolean;
}

/**
 * LinearHints of the core: amounts by node, from which every mask can be judged, and masks that are
 * listed beside.
 */
interface Linear {
  /** What the nodes of a mask must have of each need. */
  readonly requests: readonly number[];
  readonly narrowest: number;
  readonly packagesNeeded: number;
  /** Those that may be in a mask, ascending, with what each has free of each need. */
  readonly nodes: readonly {
    readonly position: number;
    readonly free: readonly number[];
    readonly must: boolean;
    readonly packages: bigint;
  }[];
  /** These are hints whatever the amounts say. */
  readonly listed: readonly ListedMask[];
}

export function readLinear(words: Words, count: number): Linear {
  const wide = (at: number) => words[at]! + words[at + 1]! * 2 ** 32;
  const bit = (at: number, i: number) => ((words[at + (i >>> 5)]! >>> (i & 31)) & 1) === 1;
  const packagesNeeded = words[9]!;
  const needs = Array.from({ length: words[2]! }, (_, need) => LINEAR_HEADER + need * 2 * (1 + count));
  const packages = LINEAR_HEADER + needs.length * 2 * (1 + count);
  const requests = needs.map(wide);
  // What several needs want together, as parts of each: a need of its own that follows from them,
  // and tells early what cannot meet all. Rounding must not make it tell too much.
  const isJoint = requests.length > 1;
  const jointly = (free: number[]) =>
    free.reduce((sum, amount, i) => sum + Math.min(1, amount / requests[i]!), 0);
  const nodes = [];
  for (let position = 0; position < count; position++) {
    if (!bit(6, position)) continue;
    const at = packages + 2 * position;
    const free = needs.map((need) => wide(need + 2 + 2 * position));
    nodes.push({
      position,
      free: isJoint ? [...free, jointly(free)] : free,
      must: bit(4, position),
      packages: packagesNeeded > 0 ? BigInt(words[at]!) | (BigInt(words[at + 1]!) << 32n) : 0n,
    });
  }
  const listed = Array.from({ length: words[3]! }, (_, i) => {
    const at = words.length - (words[3]! - i) * WORDS_PER_HINT;
    return { positions: positionsIn([words[at]!, words[at + 1]!], count), preferred: words[at + 2] === 1 };
  });
  const joint = isJoint ? [requests.length * (1 - 1e-9)] : [];
  return { requests: [...requests, ...joint], narrowest: words[8]!, packagesNeeded, nodes, listed };
}

// The words of a family in linear form that lists these masks, where they are preferred, as ones
// that are not.
export function listedPlain(words: Words, count: number, masks: Iterable<readonly [number, number]>): Words {
  const linear = readLinear(words, count);
  const listed = new Map<string, number[]>();
  for (
    let at = words.length - WORDS_PER_HINT * linear.listed.length;
    at < words.length;
    at += WORDS_PER_HINT
  ) {
    listed.set(maskKey(words[at]!, words[at + 1]!), [...words.subarray(at, at + WORDS_PER_HINT)]);
  }
  const amounts = words.subarray(0, words.length - WORDS_PER_HINT * listed.size);
  for (const mask of masks) {
    const key = maskKey(...mask);
    const at = positionsIn(mask, count);
    if (listed.has(key) || (isOffered(linear, at) && isPreferred(linear, at))) listed.set(key, [...mask, 0]);
  }
  const ascending = [...listed.values()].sort((a, b) => a[1]! - b[1]! || a[0]! - b[0]!);
  const changed = Uint32Array.from([...amounts, ...ascending.flat()]);
  changed[3] = ascending.length;
  return changed;
}

// By node ids: of two masks of one size the one that has the lowest node in which they differ comes
// first.
export function inOrder(a: Pick<ListedMask, 'positions'>, b: Pick<ListedMask, 'positions'>): number {
  const i = a.positions.findIndex((position, at) => position !== b.positions[at]);
  return i < 0 ? 0 : a.positions[i]! - b.positions[i]!;
}

// The sets of `size` of these nodes that have what is `missing` of each need and every node that
// must be in them, lexicographically. What cannot lead to one is not entered, as far as each need
// alone can tell, so that the first come soon however many nodes there are.
export function* subsets(
  nodes: Linear['nodes'],
  size: number,
  missing: readonly number[],
  budget: Budget,
  chosen: readonly number[] = [],
): Generator<readonly number[]> {
  if (budget.steps-- <= 0 || !haveSubset(nodes, size, missing)) return;
  const [first, ...rest] = nodes;
  if (size === 0 || !first) {
    yield chosen;
    return;
  }
  const left = missing.map((amount, need) => amount - first.free[need]!);
  yield* subsets(rest, size - 1, left, budget, [...chosen, first.position]);
  if (!first.must) yield* subsets(rest, size, missing, budget, chosen);
}

function haveSubset(nodes: Linear['nodes'], size: number, missing: readonly number[]): boolean {
  const musts = nodes.filter(({ must }) => must);
  if (musts.length > size || size > nodes.length) return false;
  return missing.every((amount, need) => {
    const others = nodes.filter(({ must }) => !must).sort((a, b) => b.free[need]! - a.free[need]!);
    const widest = [...musts, ...others.slice(0, size - musts.length)];
    return widest.reduce((sum, { free }) => sum + free[need]!, 0) >= amount;
  });
}

// Whether the amounts offer it.
function isOffered({ nodes, requests }: Linear, positions: readonly number[]): boolean {
  const chosen = nodes.filter(({ position }) => positions.includes(position));
  if (chosen.length !== positions.length || nodes.some((node) => node.must && !chosen.includes(node)))
    return false;
  return requests.every((request, need) => chosen.reduce((sum, { free }) => sum + free[need]!, 0) >= request);
}

export function isPreferred(
  { nodes, narrowest, packagesNeeded }: Linear,
  positions: readonly number[],
): boolean {
  if (positions.length === narrowest) return true;
  if (packagesNeeded === 0) return false;
  const spanned = nodes
    .filter(({ position }) => positions.includes(position))
    .reduce((union, { packages }) => union | packages, 0n);
  return popcount(Number(spanned & 0xffffffffn)) + popcount(Number(spanned >> 32n)) === packagesNeeded;
}

// What is no node of the machine becomes a position that it has not.
export function positions(nodes: Iterable<number>, numaNodes: readonly number[]): Words {
  return wordsOf(Array.from(nodes, (node) => positionOf(node, numaNodes)));
}

// Where node ids are positions, the words of a set of nodes are its mask.
export function isDense(numaNodes: readonly number[]): boolean {
  return numaNodes[numaNodes.length - 1] === numaNodes.length - 1;
}

function positionOf(node: number, numaNodes: readonly number[]): number {
  if (numaNodes[node] === node) return node;
  const position = numaNodes.indexOf(node);
  return position >= 0 ? position : numaNodes.length;
}

/** The packed mask of some of the machine's nodes: [low, high], bit i stands for numaNodes[i]. */
export function maskOf(nodes: Iterable<number>, numaNodes: readonly number[]): [low: number, high: number] {
  let [low, high] = [0, 0];
  for (const node of nodes) {
    const position = positionOf(node, numaNodes);
    if (position < 32) low |= 1 << position;
    else if (position < MAX_HINT_NODES) high |= 1 << (position - 32);
  }
  return [low >>> 0, high >>> 0];
}

export function maskKey(low: number, high: number): string {
  return `${high},${low}`;
}

function positionsIn(mask: ArrayLike<number>, count: number): number[] {
  const found = [];
  for (let i = 0; i < count; i++) if ((mask[i >>> 5]! >>> (i & 31)) & 1) found.push(i);
  return found;
}

const firstBits = (count: number) => (count >= 32 ? ~0 : (1 << Math.max(count, 0)) - 1);

/** The nodes of a packed mask: [low, high], bit i stands for numaNodes[i]. */
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

/** The most NUMA nodes that hints can tell apart: a mask is one word of 64 bits. */
export const MAX_HINT_NODES = 64;
