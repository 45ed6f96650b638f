// NodeMask: at most 64 NUMA nodes in one word, as the merge of topology hints handles them.
import { inspect } from 'node:util';
import { NumalignError } from '../base/errors.js';

const BITS = 64;

function bitsOf(nodes: Iterable<number>): bigint {
  let bits = 0n;
  for (const node of nodes) {
    if (!Number.isInteger(node) || node < 0 || node >= BITS) {
      throw new NumalignError(
        'ERR_INVALID_ARGUMENT',
        `NUMA node ${String(node)} does not fit in a mask of 0 to 63`,
        {
          value: node,
          valid: '0 to 63',
        },
      );
    }
    bits |= 1n << BigInt(node);
  }
  return bits;
}

/**
 * An immutable set of NUMA nodes 0 to 63, with the order that hints have: fewer nodes first, then
 * the lower binary value.
 */
export class NodeMask implements Iterable<number> {
  /** The mask as an unsigned number: node n is bit n. */
  readonly bits: bigint;

  private constructor(bits: bigint) {
    this.bits = bits;
  }

  /** @throws ERR_INVALID_ARGUMENT for a node that is not in 0 to 63. */
  static from(nodes: Iterable<number>): NodeMask {
    return new NodeMask(bitsOf(nodes));
  }

  /**
   * All masks over `nodes` but the empty one, in the order in which hints are listed: by number of
   * nodes, then by position in `nodes`. For [0, 1, 2]: [0] [1] [2] [0,1] [0,2] [1,2] [0,1,2].
   */
  static *subsets(nodes: readonly number[]): Generator<NodeMask> {
    function* choose(begin: number, count: number, chosen: bigint): Generator<NodeMask> {
      if (count === 0) yield new NodeMask(chosen);
      else
        for (let i = begin; i + count <= nodes.length; i++)
          yield* choose(i + 1, count - 1, chosen | bits[i]!);
    }
    const bits = nodes.map((node) => bitsOf([node]));
    for (let count = 1; count <= nodes.length; count++) yield* choose(0, count, 0n);
  }

  get size(): number {
    return [...this].length;
  }

  get isEmpty(): boolean {
    return this.bits === 0n;
  }

  has(node: number): boolean {
    return Number.isInteger(node) && node >= 0 && node < BITS && ((this.bits >> BigInt(node)) & 1n) === 1n;
  }

  hasAny(nodes: Iterable<number>): boolean {
    for (const node of nodes) if (this.has(node)) return true;
    return false;
  }

  and(other: NodeMask): NodeMask {
    return new NodeMask(this.bits & other.bits);
  }

  or(other: NodeMask): NodeMask {
    return new NodeMask(this.bits | other.bits);
  }

  /** This mask less some nodes. @throws ERR_INVALID_ARGUMENT for a node that is not in 0 to 63. */
  without(nodes: Iterable<number>): NodeMask {
    return new NodeMask(this.bits & ~bitsOf(nodes));
  }

  equals(other: NodeMask): boolean {
    return this.bits === other.bits;
  }

  /** Fewer nodes; with as many nodes, the lower binary value. */
  isNarrowerThan(other: NodeMask): boolean {
    return this.size !== other.size ? this.size < other.size : this.bits < other.bits;
  }

  /** The nodes, ascending. */
  *[Symbol.iterator](): Generator<number> {
    for (let node = 0; node < BITS; node++) if (this.has(node)) yield node;
  }

  toArray(): number[] {
    return [...this];
  }

  toString(): string {
    return this.toArray().join(',');
  }

  /** What console.log shows: `NodeMask(0,1)`. */
  [inspect.custom](): string {
    return `NodeMask(${this})`;
  }
}
