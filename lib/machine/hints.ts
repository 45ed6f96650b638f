// Topology hints: what a hint provider answers. HintFamily: all hints of one resource, packed as
// the core packs them.
import { display } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import type { Words } from '../base/words.js';
import { NodeSet } from './cpu-set.js';
import { popcount, wordsOf } from './id-set.js';

/**
 * A set of NUMA nodes from which a request can be met, and whether it is as narrow as it could ever
 * be.
 */
export interface TopologyHint {
  /** null: no restriction on nodes. */
  readonly nodes: NodeSet | null;
  readonly preferred: boolean;
}

/** What the policy `none` decides, and what a container without a decision has. */
export const ANY_NODES: TopologyHint = Object.freeze({ nodes: null, preferred: false });
const NO_PREFERENCE: TopologyHint = Object.freeze({ nodes: null, preferred: true });

/** The most NUMA nodes that hints can tell apart: a mask is one word of 64 bits. */
export const MAX_HINT_NODES = 64;

// As in native/core/hint_family.h.
const LIST = 0;
const BITS = 1;
const ANY_PREFERRED = 1 << 8;
const ANY_OTHER = 1 << 9;
const LIST_HEADER = 3;
const BITS_HEADER = 2;
const LINEAR_HEADER = 10;
const WORDS_PER_HINT = 3;
const HINTS_IN_JSON = 256;
// Some milliseconds.
const STEPS_TO_FIRST = 20_000;

/** Work that may still be done. */
interface Budget {
  steps: number;
}

function invalidHint(value: unknown, valid: string): never {
  throw new NumalignError('ERR_INVALID_ARGUMENT', `a topology hint must be ${valid}, not ${display(value)}`, {
    value,
    valid,
  });
}

/**
 * All hints of one resource over the NUMA nodes of one machine, immutable. Iterating makes the
 * hints one by one, in the kubelet's order: by number of nodes, then by node ids; those that were
 * listed by hand in the order of the list. A machine of n nodes has up to 2^n of them.
 */
export class HintFamily implements Iterable<TopologyHint> {
  /** The packed form; native/core/hint_family.h describes it. Do not change it. */
  readonly words: Words;
  /** The machine's NUMA nodes, ascending: bit i of a packed mask is numaNodes[i]. */
  readonly numaNodes: readonly number[];

  /** Takes ownership of `words`. Use {@link from} or {@link Topology.cpuHints}. */
  constructor(words: Words, numaNodes: readonly number[]) {
    this.words = words;
    this.numaNodes = numaNodes;
  }

  /**
   * Packs hints that were written by hand. null: no preference; an empty list: the request cannot
   * be met.
   * @throws ERR_INVALID_ARGUMENT for anything but `{ nodes: NodeSet | null, preferred: boolean }`
   *   with nodes of the machine
   */
  static from(hints: Iterable<TopologyHint> | null, numaNodes: readonly number[]): HintFamily {
    if (hints === null)
      return new HintFamily(Uint32Array.of(LIST | ANY_PREFERRED, numaNodes.length, 0), numaNodes);
    if (typeof hints !== 'object' || !(Symbol.iterator in hints))
      invalidHint(hints, 'one of a list of hints, or null');
    // A copy: reading it may run anything.
    const list = [...hints];
    const words = new Uint32Array(LIST_HEADER + WORDS_PER_HINT * list.length);
    const arePositions = isDense(numaNodes);
    let at = LIST_HEADER;
    for (const hint of list) {
      if (typeof hint !== 'object' || hint === null || typeof hint.preferred !== 'boolean') {
        invalidHint(hint, '{ nodes: NodeSet | null, preferred: boolean }');
      }
      const { nodes, preferred } = hint;
      if (nodes === null) {
        words[0]! |= preferred ? ANY_PREFERRED : ANY_OTHER;
        continue;
      }
      if (!(nodes instanceof NodeSet) || nodes.isEmpty) {
        invalidHint(hint, '{ nodes: a NodeSet that is not empty, or null, preferred: boolean }');
      }
      // Where node ids are positions, their words are the mask.
      const mask = arePositions ? nodes.words : positions(nodes, numaNodes);
      words[at] = mask[0]!;
      words[at + 1] = mask[1] ?? 0;
      words[at + 2] = preferred ? 1 : 0;
      at += WORDS_PER_HINT;
      if (31 - Math.clz32(mask[mask.length - 1]!) + (mask.length - 1) * 32 >= numaNodes.length) {
        invalidHint(hint, `of NUMA nodes of the machine (${numaNodes.join(', ')})`);
      }
    }
    words[1] = numaNodes.length;
    words[2] = (at - LIST_HEADER) / WORDS_PER_HINT;
    return new HintFamily(at === words.length ? words : words.slice(0, at), numaNodes);
  }

  /** Whether there is no hint at all: the request cannot be met. */
  get isEmpty(): boolean {
    // The core makes the other forms only where something is offered.
    const [head = 0, , count] = this.words;
    return head === LIST && count === 0;
  }

  /** Whether the provider has no preference: its resource plays no part in the merge. */
  get isAny(): boolean {
    return (this.words[0]! & ANY_PREFERRED) !== 0 && (this.words[0]! & 0xff) === LIST && this.words[2] === 0;
  }

  [Symbol.iterator](): Generator<TopologyHint> {
    return this.#hints({ steps: Number.POSITIVE_INFINITY });
  }

  *#hints(budget: Budget): Generator<TopologyHint> {
    const head = this.words[0]!;
    if (head & ANY_PREFERRED) yield NO_PREFERENCE;
    if (head & ANY_OTHER) yield ANY_NODES;
    const form = head & 0xff;
    yield* form === LIST ? this.#listed() : form === BITS ? this.#bits() : this.#linear(budget);
  }

  toArray(): TopologyHint[] {
    return [...this];
  }

  /**
   * The first hints, as many as `limit`; of more than 16 NUMA nodes fewer, where finding the next
   * one takes too long.
   */
  first(limit: number): TopologyHint[] {
    const hints: TopologyHint[] = [];
    for (const hint of this.#hints({ steps: STEPS_TO_FIRST })) {
      if (hints.length === limit) break;
      hints.push(hint);
    }
    return hints;
  }

  /** The {@link first} 256 hints, with nodes in the list form. */
  toJSON(): { nodes: string | null; preferred: boolean }[] {
    return this.first(HINTS_IN_JSON).map(({ nodes, preferred }) => ({
      nodes: nodes?.toString() ?? null,
      preferred,
    }));
  }

  /** A copy in which these sets of nodes, where they are hints, are not preferred. */
  withoutPreferred(masks: Iterable<NodeSet>): HintFamily {
    const plain = new Map<string, readonly [number, number]>();
    for (const nodes of masks) {
      const [low = 0, high = 0] = positions(nodes, this.numaNodes);
      if (nodes.isEmpty || nodesAt([low, high], this.numaNodes).size !== nodes.size) continue;
      plain.set(maskKey(low, high), [low, high]);
    }
    const words = this.words.slice();
    const form = words[0]! & 0xff;
    if (form === LIST) {
      for (let at = LIST_HEADER; at < words.length; at += WORDS_PER_HINT) {
        if (plain.has(maskKey(words[at]!, words[at + 1]!))) words[at + 2] = 0;
      }
    } else if (form === BITS) {
      const preferred = words.subarray((words.length + BITS_HEADER) / 2);
      for (const [mask] of plain.values()) preferred[mask >>> 5]! &= ~(1 << (mask & 31));
    } else {
      return new HintFamily(listedPlain(words, this.numaNodes.length, plain.values()), this.numaNodes);
    }
    return new HintFamily(words, this.numaNodes);
  }

  *#listed(): Generator<TopologyHint> {
    for (let at = LIST_HEADER; at < this.words.length; at += WORDS_PER_HINT) {
      yield this.#hint([this.words[at]!, this.words[at + 1]!], this.words[at + 2] === 1);
    }
  }

  *#bits(): Generator<TopologyHint> {
    const length = (this.words.length - BITS_HEADER) / 2;
    const bySize: number[][] = this.numaNodes.map(() => []);
    for (let word = 0; word < length; word++) {
      for (let bits = this.words[BITS_HEADER + word]!; bits !== 0; bits &= bits - 1) {
        const mask = word * 32 + 31 - Math.clz32(bits & -bits);
        bySize[popcount(mask) - 1]!.push(mask);
      }
    }
    for (const masks of bySize) {
      // By node ids: of two masks the one that has the lowest node in which they differ.
      masks.sort((a, b) => ((a ^ b) & -(a ^ b) & a ? -1 : 1));
      for (const mask of masks) {
        const preferred = (this.words[BITS_HEADER + length + (mask >>> 5)]! >>> (mask & 31)) & 1;
        yield this.#hint([mask, 0], preferred === 1);
      }
    }
  }

  *#linear(budget: Budget): Generator<TopologyHint> {
    const linear = readLinear(this.words, this.numaNodes.length);
    for (let size = 1; size <= this.numaNodes.length; size++) {
      const listed = linear.listed.filter(({ positions }) => positions.length === size).sort(inOrder);
      let next = 0;
      for (const positions of subsets(linear.nodes, size, linear.requests, budget)) {
        for (; next < listed.length && inOrder(listed[next]!, { positions }) < 0; next++) {
          yield this.#hint(wordsOf(listed[next]!.positions), listed[next]!.preferred);
        }
        // What is listed comes from the list.
        if (next < listed.length && inOrder(listed[next]!, { positions }) === 0) continue;
        yield this.#hint(wordsOf(positions), isPreferred(linear, positions));
      }
      for (const { positions, preferred } of listed.slice(next))
        yield this.#hint(wordsOf(positions), preferred);
    }
  }

  #hint(mask: ArrayLike<number>, preferred: boolean): TopologyHint {
    return Object.freeze({ nodes: nodesAt(mask, this.numaNodes), preferred });
  }
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

function readLinear(words: Words, count: number): Linear {
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
function listedPlain(words: Words, count: number, masks: Iterable<readonly [number, number]>): Words {
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
function inOrder(a: Pick<ListedMask, 'positions'>, b: Pick<ListedMask, 'positions'>): number {
  const i = a.positions.findIndex((position, at) => position !== b.positions[at]);
  return i < 0 ? 0 : a.positions[i]! - b.positions[i]!;
}

// The sets of `size` of these nodes that have what is `missing` of each need and every node that
// must be in them, lexicographically. What cannot lead to one is not entered, as far as each need
// alone can tell, so that the first come soon however many nodes there are.
function* subsets(
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

function isPreferred({ nodes, narrowest, packagesNeeded }: Linear, positions: readonly number[]): boolean {
  if (positions.length === narrowest) return true;
  if (packagesNeeded === 0) return false;
  const spanned = nodes
    .filter(({ position }) => positions.includes(position))
    .reduce((union, { packages }) => union | packages, 0n);
  return popcount(Number(spanned & 0xffffffffn)) + popcount(Number(spanned >> 32n)) === packagesNeeded;
}

// What is no node of the machine becomes a position that it has not.
function positions(nodes: Iterable<number>, numaNodes: readonly number[]): Words {
  return wordsOf(Array.from(nodes, (node) => positionOf(node, numaNodes)));
}

// Where node ids are positions, the words of a set of nodes are its mask.
function isDense(numaNodes: readonly number[]): boolean {
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

function maskKey(low: number, high: number): string {
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
