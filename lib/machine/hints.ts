// Topology hints, the answers of hint providers. HintFamily holds all hints of one resource in the
// core's packed form. This file packs and reads only lists of hints.
import { display } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { copyPart, type Words } from '../base/words.js';
import { NodeSet } from './cpu-set.js';
import { isDense, maskOf, nodesAt, positions } from './hint-masks.js';
import { onlyWord } from './id-set.js';

/**
 * A set of NUMA nodes that can serve a request. `preferred` if the set is as narrow as the machine
 * allows.
 */
export interface TopologyHint {
  /** The NUMA nodes; null: any. */
  readonly nodes: NodeSet | null;
  /** Whether the set is as narrow as the machine allows for the request. */
  readonly preferred: boolean;
}

/** The decision of the policy `none`, and the hint of a container without a decision. */
export const ANY_NODES: TopologyHint = Object.freeze({ nodes: null, preferred: false });
const NO_PREFERENCE: TopologyHint = Object.freeze({ nodes: null, preferred: true });
const HINTS_IN_JSON = 256;

// The packed form of a list, see native/core/hint_family.h: [flags, number of nodes, count, then
// (low, high, preferred) for each hint].
const LIST = 0;
const FORM = 0xff;
const ANY_PREFERRED = 1 << 8;
const ANY_OTHER = 1 << 9;
const LIST_HEADER = 3;
// The packed form with a bit per mask: [flags, number of nodes, offered masks, preferred masks].
const BITS = 1;
const BITS_HEADER = 2;
// With more nodes, there are more masks than most lists have hints.
const FEW_NODES = 8;
// Caches hints of machines with few nodes, by mask and preference. Hints never change, and making
// one takes as long as a merge.
const hintsOfFewNodes = new Array<TopologyHint | undefined>(2 * 2 ** FEW_NODES);
const WORDS_PER_HINT = 3;
// How many hints an iteration gets from the core at once: few at first, then more.
const FEWEST_AT_ONCE = 64;
const MOST_AT_ONCE = 65_536;
// The core counts in 32 bits.
const MOST = 2 ** 31 - 1;
const NO_MASK = [0, 0] as const;

function invalidHint(value: unknown, valid: string): never {
  throw new NumalignError('ERR_INVALID_ARGUMENT', `a topology hint must be ${valid}, not ${display(value)}`, {
    value,
    valid,
  });
}

function checkIterable(hints: unknown): void {
  if (typeof hints !== 'object' || hints === null || !(Symbol.iterator in hints))
    invalidHint(hints, 'one of a list of hints, or null');
}

function checkHint(hint: TopologyHint): void {
  if (typeof hint !== 'object' || hint === null || typeof hint.preferred !== 'boolean')
    invalidHint(hint, '{ nodes: NodeSet | null, preferred: boolean }');
}

function invalidNodes(hint: TopologyHint): never {
  invalidHint(hint, '{ nodes: a NodeSet that is not empty, or null, preferred: boolean }');
}

const nodesOf = (numaNodes: readonly number[]) => `of NUMA nodes of the machine (${numaNodes.join(', ')})`;

// If few nodes have their positions as ids, a mask means the same on all such machines.
const areFew = (numaNodes: readonly number[]) => numaNodes.length <= FEW_NODES && isDense(numaNodes);

function newHint(mask: ArrayLike<number>, preferred: boolean, numaNodes: readonly number[]): TopologyHint {
  return Object.freeze({ nodes: nodesAt(mask, numaNodes), preferred });
}

/** The hint of a packed mask of the machine's nodes; null: any nodes. */
export function hintAt(
  mask: ArrayLike<number> | null,
  preferred: boolean,
  numaNodes: readonly number[],
): TopologyHint {
  if (mask === null) return preferred ? NO_PREFERENCE : ANY_NODES;
  if (!areFew(numaNodes) || mask[0]! >>> numaNodes.length !== 0) return newHint(mask, preferred, numaNodes);
  const at = 2 * mask[0]! + (preferred ? 1 : 0);
  hintsOfFewNodes[at] ??= newHint(mask, preferred, numaNodes);
  return hintsOfFewNodes[at];
}

/**
 * All hints of one resource over one machine's NUMA nodes, immutable. Iterating makes the hints one
 * by one in the kubelet's order: by number of nodes, then by node ids. Hints packed from a list
 * keep its order. A machine with n nodes has up to 2^n hints.
 */
export class HintFamily implements Iterable<TopologyHint> {
  /** The packed form; native/core/hint_family.h describes it. Do not change it. */
  readonly words: Words;
  /** The machine's NUMA nodes, ascending. Bit i of a packed mask is numaNodes[i]. */
  readonly numaNodes: readonly number[];

  /** Takes ownership of `words`. Use {@link from} or {@link Topology.cpuHints}. */
  constructor(words: Words, numaNodes: readonly number[]) {
    this.words = words;
    this.numaNodes = numaNodes;
  }

  /**
   * Packs a list of hints. null: no preference; an empty list: the request does not fit.
   * @throws ERR_INVALID_ARGUMENT for anything but `{ nodes, preferred }`, where `nodes` is null or a
   *   NodeSet of the machine's nodes that is not empty, and `preferred` a boolean
   */
  static from(hints: Iterable<TopologyHint> | null, numaNodes: readonly number[]): HintFamily {
    if (hints === null)
      return new HintFamily(Uint32Array.of(LIST | ANY_PREFERRED, numaNodes.length, 0), numaNodes);
    checkIterable(hints);
    // A copy, because reading it may run the caller's code.
    const list = [...hints];
    const words = new Uint32Array(LIST_HEADER + WORDS_PER_HINT * list.length);
    const arePositions = isDense(numaNodes);
    let at = LIST_HEADER;
    for (const hint of list) {
      checkHint(hint);
      const { nodes, preferred } = hint;
      if (nodes === null) {
        words[0]! |= preferred ? ANY_PREFERRED : ANY_OTHER;
        continue;
      }
      if (!(nodes instanceof NodeSet) || nodes.isEmpty) invalidNodes(hint);
      // If node ids are positions, the words are the mask.
      const mask = arePositions ? nodes.words : positions(nodes, numaNodes);
      words[at] = mask[0]!;
      words[at + 1] = mask[1] ?? 0;
      words[at + 2] = preferred ? 1 : 0;
      at += WORDS_PER_HINT;
      if (31 - Math.clz32(mask[mask.length - 1]!) + (mask.length - 1) * 32 >= numaNodes.length) {
        invalidHint(hint, nodesOf(numaNodes));
      }
    }
    words[1] = numaNodes.length;
    words[2] = (at - LIST_HEADER) / WORDS_PER_HINT;
    return new HintFamily(at === words.length ? words : words.slice(0, at), numaNodes);
  }

  /** True if there are no hints: the request does not fit. */
  get isEmpty(): boolean {
    // The core makes the other forms only with hints.
    const [head = 0, , count] = this.words;
    return head === LIST && count === 0;
  }

  /** True if the provider has no preference. Its resource does not affect the merge. */
  get isAny(): boolean {
    return (this.words[0]! & ANY_PREFERRED) !== 0 && (this.words[0]! & FORM) === LIST && this.words[2] === 0;
  }

  *[Symbol.iterator](): Generator<TopologyHint, void, undefined> {
    yield* this.#withoutNodes();
    let after: readonly number[] = NO_MASK;
    for (let limit = FEWEST_AT_ONCE; ; limit = Math.min(4 * limit, MOST_AT_ONCE)) {
      const listing = native.listHints({ family: this.words, after, limit, isBounded: false });
      yield* this.#hintsIn(listing);
      if (listing[0] === 1) return;
      after = [...listing.subarray(-WORDS_PER_HINT, -1)];
    }
  }

  #withoutNodes(): TopologyHint[] {
    const flags = this.words[0]!;
    return [...(flags & ANY_PREFERRED ? [NO_PREFERENCE] : []), ...(flags & ANY_OTHER ? [ANY_NODES] : [])];
  }

  *#hintsIn(listing: Words): Generator<TopologyHint> {
    for (let at = 1; at < listing.length; at += WORDS_PER_HINT) {
      yield hintAt([listing[at]!, listing[at + 1]!], listing[at + 2] === 1, this.numaNodes);
    }
  }

  /** All hints in the order of iteration: up to 2^n on a machine with n nodes. */
  toArray(): TopologyHint[] {
    return [...this];
  }

  /**
   * The first hints, up to `limit`. On more than 16 NUMA nodes perhaps fewer, if the search for the
   * next one takes too long.
   */
  first(limit: number): TopologyHint[] {
    const most = Math.max(0, Math.min(Math.trunc(limit), MOST));
    const listing = native.listHints({ family: this.words, after: NO_MASK, limit: most, isBounded: true });
    return [...this.#withoutNodes(), ...this.#hintsIn(listing)].slice(0, most);
  }

  /** The {@link first} 256 hints, with nodes in the list form. */
  toJSON(): { nodes: string | null; preferred: boolean }[] {
    return this.first(HINTS_IN_JSON).map(({ nodes, preferred }) => ({
      nodes: nodes?.toString() ?? null,
      preferred,
    }));
  }

  /** A copy in which hints for these sets of nodes are not preferred. */
  withoutPreferred(masks: Iterable<NodeSet>): HintFamily {
    const isHere = (nodes: NodeSet) => [...nodes].every((node) => this.numaNodes.includes(node));
    const packed = [...masks].filter(isHere).flatMap((nodes) => maskOf(nodes, this.numaNodes));
    return new HintFamily(native.withoutPreferred(this.words, packed), this.numaNodes);
  }
}

// Caches families by their words, because families never change. On machines with few nodes most
// families repeat.
const MOST_KEPT_WORDS = 20;
const KEPT_FAMILIES = 64;
const familiesOf = new WeakMap<readonly number[], (HintFamily | undefined)[]>();

/** The family of some words inside a larger array; copies them if needed. */
export function familyAt(words: Words, at: number, length: number, numaNodes: readonly number[]): HintFamily {
  if (length > MOST_KEPT_WORDS) return new HintFamily(copyPart(words, at, length), numaNodes);
  let families = familiesOf.get(numaNodes);
  if (!families) {
    families = new Array<HintFamily | undefined>(KEPT_FAMILIES).fill(undefined);
    familiesOf.set(numaNodes, families);
  }
  let sum = length;
  for (let i = at; i < at + length; i++) sum = Math.imul(sum ^ words[i]!, 0x01000193);
  const place = (sum ^ (sum >>> 16)) & (KEPT_FAMILIES - 1);
  const cachedFamily = families[place];
  if (cachedFamily && isPart(cachedFamily.words, words, at, length)) return cachedFamily;
  const family = new HintFamily(copyPart(words, at, length), numaNodes);
  families[place] = family;
  return family;
}

function isPart(words: Words, of: Words, at: number, length: number): boolean {
  if (words.length !== length) return false;
  for (let i = 0; i < length; i++) if (words[i] !== of[at + i]) return false;
  return true;
}

/**
 * Like {@link HintFamily.from}, for a merge: loses the order and duplicates of hints. Packs much
 * faster on machines with few nodes.
 */
export function unorderedHints(
  hints: Iterable<TopologyHint> | null,
  numaNodes: readonly number[],
): HintFamily {
  const { length } = numaNodes;
  if (hints === null || !areFew(numaNodes)) return HintFamily.from(hints, numaNodes);
  checkIterable(hints);
  const each = Math.max(1, 2 ** length / 32);
  const words = new Uint32Array(BITS_HEADER + 2 * each);
  let [flags, isOffered] = [0, false];
  for (const hint of hints) {
    checkHint(hint);
    const { nodes, preferred } = hint;
    if (nodes === null) {
      flags |= preferred ? ANY_PREFERRED : ANY_OTHER;
      continue;
    }
    if (!(nodes instanceof NodeSet)) invalidNodes(hint);
    const mask = onlyWord(nodes);
    if (mask === 0) invalidNodes(hint);
    if (mask === null || mask >>> length !== 0) invalidHint(hint, nodesOf(numaNodes));
    const at = BITS_HEADER + (mask >>> 5);
    words[at]! |= 1 << (mask & 31);
    if (preferred) words[at + each]! |= 1 << (mask & 31);
    isOffered = true;
  }
  if (!isOffered) return new HintFamily(Uint32Array.of(LIST | flags, length, 0), numaNodes);
  words[0] = BITS | flags;
  words[1] = length;
  return new HintFamily(words, numaNodes);
}
