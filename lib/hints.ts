// Topology hints: what a hint provider answers. HintFamily: all hints of one resource, packed as the core packs them.
import { inspect } from 'node:util';
import { NodeSet } from './cpu-set.js';
import { NumalignError } from './errors.js';
import { wordsOf } from './id-set.js';
import { native, type Words } from './native.js';
import { NodeMask } from './node-mask.js';

/** A set of NUMA nodes from which a request can be met, and whether it is as narrow as it could ever be. */
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
const WORDS_PER_HINT = 3;
const HINTS_IN_JSON = 256;

function invalidHint(value: unknown, valid: string): never {
  throw new NumalignError('ERR_INVALID_ARGUMENT', `a topology hint must be ${valid}, not ${inspect(value)}`, {
    value,
    valid,
  });
}

/**
 * All hints of one resource over the NUMA nodes of one machine, immutable. Iterating makes the hints one by one, in the kubelet's order: by number of
 * nodes, then by node ids; those that were listed by hand in the order of the list. A machine of n nodes has up to 2^n of them.
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
   * Packs hints that were written by hand. null: no preference; an empty list: the request cannot be met.
   * @throws ERR_INVALID_ARGUMENT for anything but `{ nodes: NodeSet | null, preferred: boolean }` with nodes of the machine
   */
  static from(hints: Iterable<TopologyHint> | null, numaNodes: readonly number[]): HintFamily {
    if (hints === null) return new HintFamily(Uint32Array.of(LIST | ANY_PREFERRED, numaNodes.length, 0), numaNodes);
    if (typeof hints !== 'object' || !(Symbol.iterator in hints)) invalidHint(hints, 'one of a list of hints, or null');
    const list = Array.isArray(hints) ? (hints as TopologyHint[]) : [...hints];
    const words = new Uint32Array(LIST_HEADER + WORDS_PER_HINT * list.length);
    const isDense = numaNodes.length === numaNodes[numaNodes.length - 1]! + 1;
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
      const mask = isDense ? nodes.words : positions(nodes, numaNodes);
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

  /** Whether the provider has no preference: its resource plays no part in the merge. */
  get isAny(): boolean {
    return (this.words[0]! & ANY_PREFERRED) !== 0 && (this.words[0]! & 0xff) === LIST && this.words[2] === 0;
  }

  *[Symbol.iterator](): Generator<TopologyHint> {
    const head = this.words[0]!;
    if (head & ANY_PREFERRED) yield NO_PREFERENCE;
    if (head & ANY_OTHER) yield ANY_NODES;
    if ((head & 0xff) === LIST) yield* this.#listed();
    else yield* this.#enumerated();
  }

  toArray(): TopologyHint[] {
    return [...this];
  }

  /** The first hints, 256 at most, nodes in the list form. */
  toJSON(): { nodes: string | null; preferred: boolean }[] {
    const shown = [];
    for (const { nodes, preferred } of this) {
      shown.push({ nodes: nodes?.toString() ?? null, preferred });
      if (shown.length === HINTS_IN_JSON) break;
    }
    return shown;
  }

  *#listed(): Generator<TopologyHint> {
    for (let at = LIST_HEADER; at < this.words.length; at += WORDS_PER_HINT) {
      yield this.#hint([this.words[at]!, this.words[at + 1]!], this.words[at + 2] === 1);
    }
  }

  *#enumerated(): Generator<TopologyHint> {
    for (const { bits } of NodeMask.subsets(this.numaNodes.map((_, position) => position))) {
      const mask = [Number(bits & 0xffffffffn), Number(bits >> 32n)];
      const verdict = this.#judge(mask);
      if (verdict > 0) yield this.#hint(mask, verdict === 2);
    }
  }

  // 0: no hint, 1: a hint, 2: a preferred one.
  #judge([low, high]: readonly number[]): number {
    if ((this.words[0]! & 0xff) !== BITS) return native.judgeMask(this.words, low!, high!);
    const length = (this.words.length - BITS_HEADER) / 2;
    const bit = (from: number) => (this.words[from + (low! >>> 5)]! >>> (low! & 31)) & 1;
    return bit(BITS_HEADER) + bit(BITS_HEADER + length);
  }

  #hint(mask: readonly number[], preferred: boolean): TopologyHint {
    return { nodes: nodesAt(mask, this.numaNodes), preferred };
  }
}

function positions(nodes: NodeSet, numaNodes: readonly number[]): Words {
  return wordsOf(
    Array.from(nodes, (node) => {
      const position = numaNodes.indexOf(node);
      return position >= 0 ? position : numaNodes.length;
    }),
  );
}

/** The nodes of a packed mask: [low, high], bit i stands for numaNodes[i]. */
export function nodesAt(mask: ArrayLike<number>, numaNodes: readonly number[]): NodeSet {
  const nodes = [];
  for (let i = 0; i < numaNodes.length; i++) if ((mask[i >>> 5]! >>> (i & 31)) & 1) nodes.push(numaNodes[i]!);
  return NodeSet.from(nodes);
}
