// Topology hints: what a hint provider answers. HintFamily: all hints of one resource, packed as
// the core packs them.
import { display } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import type { Words } from '../base/words.js';
import { NodeSet } from './cpu-set.js';
import {
  ANY_OTHER,
  ANY_PREFERRED,
  BITS,
  BITS_HEADER,
  type Budget,
  inOrder,
  isDense,
  isPreferred,
  LIST,
  LIST_HEADER,
  listedPlain,
  maskKey,
  nodesAt,
  positions,
  readLinear,
  STEPS_TO_FIRST,
  subsets,
  WORDS_PER_HINT,
} from './hint-words.js';
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
const HINTS_IN_JSON = 256;

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
