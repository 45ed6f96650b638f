// The forms of sets and machines that the addon takes.

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
