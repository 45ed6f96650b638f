// CpuSet and NodeSet: sets of CPU ids and of NUMA node ids, as distinct types.
import { inspect } from 'node:util';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import type { Words } from '../base/words.js';
import { IdSet, wordsOf } from './id-set.js';

function checkText(text: unknown, what: string): string {
  if (typeof text === 'string') return text;
  throw new NumalignError(
    'ERR_INVALID_ARGUMENT',
    `${what} must be a text such as "0-3,8", not ${inspect(text)}`,
    {
      value: text,
      valid: 'a text such as "0-3,8"',
    },
  );
}

// `parse`: the function that reads lists.
function checkIds(ids: Iterable<number>, maximum: number, what: string, parse: string): number[] {
  if (typeof ids !== 'object' || ids === null || !(Symbol.iterator in ids)) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `${what}s must be a list of numbers, not ${inspect(ids)}`,
      {
        value: ids,
        valid: 'an iterable of numbers',
      },
    );
  }
  const list = [...ids];
  for (const id of list) {
    if (!Number.isInteger(id) || id < 0 || id > maximum) {
      throw new NumalignError(
        'ERR_INVALID_ARGUMENT',
        typeof id === 'string'
          ? `${what} ${inspect(id)} is a text: ${parse}() reads lists such as "0-3,8"`
          : `${what} ${String(id)} is not an integer from 0 to ${maximum}`,
        {
          value: id,
          valid: `0 to ${maximum}`,
        },
      );
    }
  }
  return list;
}

/** An immutable set of CPU ids (0 to 65,535), as Linux numbers them. */
export class CpuSet extends IdSet<CpuSet> {
  declare private readonly kind: 'cpu';
  /** The greatest possible id. */
  static readonly MAX_ID = 65_535;
  /** The set without CPUs. */
  static readonly EMPTY = new CpuSet(new Uint32Array());

  /**
   * A set of these ids.
   * @throws ERR_INVALID_ARGUMENT for an id that is not an integer or out of range
   */
  static of(...ids: number[]): CpuSet {
    return CpuSet.from(ids);
  }

  /**
   * A set of these ids.
   * @throws ERR_INVALID_ARGUMENT for an id that is not an integer or out of range
   */
  static from(ids: Iterable<number>): CpuSet {
    return new CpuSet(wordsOf(checkIds(ids, CpuSet.MAX_ID, 'the CPU id', 'CpuSet.parse')));
  }

  /**
   * Parses the Linux list form: `0-3,8`; the empty text is the empty set. Like the kubelet, accepts
   * any order, overlaps, leading zeros and a `+`, and refuses spaces, empty parts, descending
   * ranges and strides.
   * @throws ERR_INVALID_LIST; the message names the wrong part
   */
  static parse(text: string): CpuSet {
    return new CpuSet(native.parseCpuList(checkText(text, 'a list of CPUs')));
  }

  /** Converts a set, its list form, or ids. @throws as {@link parse} and {@link from} */
  static coerce(value: CpuSet | string | Iterable<number>): CpuSet {
    if (value instanceof CpuSet) return value;
    return typeof value === 'string' ? CpuSet.parse(value) : CpuSet.from(value);
  }

  protected make(words: Words): CpuSet {
    return new CpuSet(words);
  }

  toString(): string {
    return this.isEmpty ? '' : native.formatCpuList(this.words);
  }
}

// Sets of the first nodes, by their only word. Each grant has some, and most are the same.
const knownNodes = new Map<number, NodeSet>();
const MOST_KNOWN = 64;

/** An immutable set of NUMA node ids (0 to 1,023), as Linux numbers them. */
export class NodeSet extends IdSet<NodeSet> {
  declare private readonly kind: 'node';
  /** The greatest possible id. */
  static readonly MAX_ID = 1_023;
  /** The set without NUMA nodes. */
  static readonly EMPTY = new NodeSet(new Uint32Array());

  /**
   * A set of these ids.
   * @throws ERR_INVALID_ARGUMENT for an id that is not an integer or out of range
   */
  static of(...ids: number[]): NodeSet {
    return NodeSet.from(ids);
  }

  /**
   * A set of these ids.
   * @throws ERR_INVALID_ARGUMENT for an id that is not an integer or out of range
   */
  static from(ids: Iterable<number>): NodeSet {
    const [id, ...others] = Array.isArray(ids) ? ids : [];
    const one = others.length === 0 && id >>> 0 === id && id < 32 && knownNodes.get((1 << id) >>> 0);
    if (one) return one;
    const words = wordsOf(checkIds(ids, NodeSet.MAX_ID, 'the NUMA node id', 'NodeSet.parse'));
    if (words.length === 0) return NodeSet.EMPTY;
    const known = words.length === 1 ? knownNodes.get(words[0]!) : undefined;
    const set = known ?? new NodeSet(words);
    if (words.length === 1 && knownNodes.size < MOST_KNOWN) knownNodes.set(words[0]!, set);
    return set;
  }

  /** Parses the Linux list form, by the rules of {@link CpuSet.parse}. @throws ERR_INVALID_LIST */
  static parse(text: string): NodeSet {
    return new NodeSet(native.parseNodeList(checkText(text, 'a list of NUMA nodes')));
  }

  protected make(words: Words): NodeSet {
    return new NodeSet(words);
  }

  toString(): string {
    return this.isEmpty ? '' : native.formatNodeList(this.words);
  }
}
