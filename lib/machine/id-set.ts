// The common part of CpuSet and NodeSet: an immutable bitmap of small ids.
import { inspect } from 'node:util';
import { NumalignError } from '../base/errors.js';
import type { Words } from '../base/words.js';

const WORD_BITS = 32;

function trimmed(words: Words): Words {
  let length = words.length;
  while (length > 0 && words[length - 1] === 0) length--;
  return length === words.length ? words : words.slice(0, length);
}

function notWords(name: string, value: unknown): NumalignError {
  const ways = `${name}.of(0, 1), ${name}.from([0, 1]), ${name}.parse('0-1')`;
  return new NumalignError(
    'ERR_INVALID_ARGUMENT',
    `new ${name}() takes the words of a bitmap, not ${inspect(value, { depth: 0, maxStringLength: 80 })}; make a set by ${ways}`,
    { value, valid: ways },
  );
}

function isWithin(words: Words, others: Words): boolean {
  if (words.length > others.length) return false;
  for (let i = 0; i < words.length; i++) if ((words[i]! & ~others[i]!) !== 0) return false;
  return true;
}

function popcount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/**
 * The word of a set whose ids are below 32, as a signed number; else null. Reading it is much
 * faster than reading the words, which lie elsewhere in memory.
 */
export let onlyWord: <Self extends IdSet<Self>>(set: IdSet<Self>) => number | null;

/**
 * An immutable set of ids from 0 to a maximum. CpuSet and NodeSet extend it as distinct types, so
 * that one cannot take the place of the other.
 */
export abstract class IdSet<Self extends IdSet<Self>> implements Iterable<number> {
  /** The 32-bit words of the bitmap, lowest ids first. Do not change them. */
  readonly words: Words;

  // See onlyWord.
  readonly #only: number | null;
  #size: number | undefined;

  /** Takes ownership of `words`. */
  constructor(words: Words) {
    if (!ArrayBuffer.isView(words)) throw notWords(this.constructor.name, words);
    this.words = trimmed(words);
    this.#only = this.words.length > 1 ? null : this.words[0]! | 0;
  }

  static {
    onlyWord = (set) => set.#only;
  }

  protected abstract make(words: Words): Self;

  // An immutable set can stand for its own copy.
  private get self(): Self {
    return this as unknown as Self;
  }

  /** The number of ids. */
  get size(): number {
    this.#size ??= sizeOfBoth(this, this);
    return this.#size;
  }

  /** Whether the set has no ids. */
  get isEmpty(): boolean {
    return this.words.length === 0;
  }

  /** Whether the id is in the set. */
  has(id: number): boolean {
    return Number.isInteger(id) && id >= 0 && (((this.words[id >>> 5] ?? 0) >>> (id & 31)) & 1) === 1;
  }

  /** The lowest id; undefined in the empty set. */
  get first(): number | undefined {
    for (const id of this) return id;
    return undefined;
  }

  /** The ids that are in either set. */
  union(other: Self): Self {
    if (other.words.length === 0) return this.self;
    if (this.words.length === 0 && other.constructor === this.constructor) return other;
    if (isWithin(other.words, this.words)) return this.self;
    const [long, short] = this.words.length >= other.words.length ? [this, other] : [other, this];
    const words = new Uint32Array(long.words);
    for (let i = 0; i < short.words.length; i++) words[i]! |= short.words[i]!;
    return this.make(words);
  }

  /** The ids that are in both sets. */
  intersection(other: Self): Self {
    const { words: members } = this;
    const others = other.words;
    if (isWithin(members, others)) return this.self;
    let length = Math.min(members.length, others.length);
    while (length > 0 && (members[length - 1]! & others[length - 1]!) === 0) length--;
    const words = new Uint32Array(length);
    for (let i = 0; i < length; i++) words[i] = members[i]! & others[i]!;
    return this.make(words);
  }

  /** The ids of this set that are not in `other`. */
  difference(other: Self): Self {
    if (!this.intersects(other)) return this.self;
    const words = new Uint32Array(this.words);
    const n = Math.min(words.length, other.words.length);
    for (let i = 0; i < n; i++) words[i]! &= ~other.words[i]!;
    return this.make(words);
  }

  /** Whether `other` has all ids of this set. */
  isSubsetOf(other: Self): boolean {
    return isWithin(this.words, other.words);
  }

  /** Whether the sets have an id in common. */
  intersects(other: Self): boolean {
    const n = Math.min(this.words.length, other.words.length);
    for (let i = 0; i < n; i++) if ((this.words[i]! & other.words[i]!) !== 0) return true;
    return false;
  }

  /** Whether both sets have the same ids. */
  equals(other: Self): boolean {
    const { words } = this;
    if (words.length !== other.words.length) return false;
    for (let i = 0; i < words.length; i++) if (words[i] !== other.words[i]) return false;
    return true;
  }

  /** The ids, ascending. */
  *[Symbol.iterator](): Generator<number, void, undefined> {
    for (let i = 0; i < this.words.length; i++) {
      for (let word = this.words[i]!; word !== 0; word &= word - 1) {
        yield i * WORD_BITS + 31 - Math.clz32(word & -word);
      }
    }
  }

  /** The ids in ascending order. */
  toArray(): number[] {
    const ids = new Array<number>(this.size);
    let next = 0;
    for (let i = 0; i < this.words.length; i++) {
      for (let word = this.words[i]!; word !== 0; word &= word - 1) {
        ids[next++] = i * WORD_BITS + 31 - Math.clz32(word & -word);
      }
    }
    return ids;
  }

  /** The Linux list form, for example `0-3,8`: ascending, runs of two or more joined with `-`. */
  abstract toString(): string;

  /** The list form. */
  toJSON(): string {
    return this.toString();
  }

  /** The form of console.log: `CpuSet(0-3,8)`. */
  [inspect.custom](): string {
    return `${this.constructor.name}(${this})`;
  }
}

/** The number of common ids, without making a set of them. */
export function sizeOfBoth<Self extends IdSet<Self>>(a: IdSet<Self>, b: IdSet<Self>): number {
  const length = Math.min(a.words.length, b.words.length);
  let n = 0;
  for (let i = 0; i < length; i++) n += popcount(a.words[i]! & b.words[i]!);
  return n;
}

/** The words of a set of ids. REQUIRES: every id is an integer of at least 0. */
export function wordsOf(ids: Iterable<number>): Words {
  const list = [...ids];
  const words = new Uint32Array(list.reduce((n, id) => Math.max(n, (id >>> 5) + 1), 0));
  for (const id of list) words[id >>> 5]! |= 1 << (id & 31);
  return words;
}
