// Words: the forms of sets and machines that the addon takes, and the wire: two arrays that the addon
// keeps, through which questions go to the core and answers come back. To make or read a new typed
// array takes an addon longer than most of the core's work.
import { types } from 'node:util';

/** A set as it crosses the boundary: 32-bit words, lowest ids first, the last word not zero. */
export type Words = Uint32Array;

/** An immutable Topology of the core, opaque to JavaScript: its member is in types only. */
export interface TopologyHandle {
  readonly topologyHandle: true;
}

/** A copy of a part of some words. */
export function copyPart(words: Words, at: number, length: number): Words {
  // Most lists are short: `slice` is slower for them.
  if (length > 64) return words.slice(at, at + length);
  const list = new Uint32Array(length);
  for (let i = 0; i < length; i++) list[i] = words[at + i]!;
  return list;
}

/** Reads an answer part by part. The next call of the addon overwrites it. */
export class AnswerReader {
  words: Words = new Uint32Array(0);
  at = 0;

  word(): number {
    return this.words[this.at++]!;
  }

  flag(): boolean {
    return this.words[this.at++] === 1;
  }

  /** Returns the position of the next words, and goes on behind them. */
  skip(length: number): number {
    const { at } = this;
    this.at += length;
    return at;
  }

  list(): Words {
    const length = this.word();
    return copyPart(this.words, this.skip(length), length);
  }
}

/** The number of words on the wire, or the words themselves if the wire is too short. */
export type Answer = number | Words;

/** The addon, which keeps the arrays. */
interface WireEnd {
  setWire(words: Words, amounts: Float64Array): void;
}

const LEAST = 4096;
// For the words between two lists.
const ROOM = 64;

function wrongList(kind: string): never {
  throw new TypeError(`a ${kind} was expected`);
}

export class Wire {
  readonly #answer = new AnswerReader();
  #words = new Uint32Array(LEAST);
  #amounts = new Float64Array(LEAST);
  // The words and amounts that are written.
  #length = 0;
  #amountsLength = 0;

  constructor(private readonly addon: WireEnd) {
    addon.setWire(this.#words, this.#amounts);
  }

  /** Begins a question. */
  begin(): this {
    this.#length = 0;
    this.#amountsLength = 0;
    return this;
  }

  /** At most {@link ROOM} in turn. */
  word(word: number): void {
    this.#words[this.#length++] = word;
  }

  flag(flag: boolean): void {
    this.#words[this.#length++] = flag ? 1 : 0;
  }

  /** Short lists are faster copied word by word. */
  list(list: Words): void {
    if (!types.isUint32Array(list)) wrongList('Uint32Array');
    const { length } = list;
    const at = this.#open(length);
    const words = this.#words;
    if (length > 64) words.set(list, at);
    else for (let i = 0; i < length; i++) words[at + i] = list[i]!;
  }

  /** Copies each number: to make a typed array of the list would take longer. */
  numbers(list: readonly number[]): void {
    if (!Array.isArray(list)) wrongList('list of numbers');
    const { length } = list;
    const at = this.#open(length);
    const words = this.#words;
    for (let i = 0; i < length; i++) words[at + i] = list[i]!;
  }

  amounts(list: readonly number[]): void {
    if (!Array.isArray(list)) wrongList('list of numbers');
    const { length } = list;
    this.word(length);
    const at = this.#amountsLength;
    this.#amountsLength = at + length;
    if (at + length > this.#amounts.length) this.#grow();
    const amounts = this.#amounts;
    for (let i = 0; i < length; i++) amounts[at + i] = list[i]!;
  }

  read(answer: Answer): AnswerReader {
    this.#answer.words = typeof answer === 'number' ? this.#words : answer;
    this.#answer.at = 0;
    return this.#answer;
  }

  wordsOf(answer: Answer): Words {
    return typeof answer === 'number' ? copyPart(this.#words, 0, answer) : answer;
  }

  // Writes the length of a list, and returns the position of its members.
  #open(length: number): number {
    const at = this.#length + 1;
    this.#words[at - 1] = length;
    this.#length = at + length;
    if (at + length + ROOM > this.#words.length) this.#grow();
    return at;
  }

  #grow(): void {
    const [words, amounts] = [this.#words, this.#amounts];
    this.#words = new Uint32Array(Math.max(2 * (this.#length + ROOM), words.length));
    this.#amounts = new Float64Array(Math.max(2 * this.#amountsLength, amounts.length));
    this.#words.set(words);
    this.#amounts.set(amounts);
    this.addon.setWire(this.#words, this.#amounts);
  }
}
