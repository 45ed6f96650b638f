// The forms of sets and machines that the addon takes.

/** A set as it crosses the boundary: 32-bit words, lowest ids first, the last word not zero. */
export type Words = Uint32Array;

declare const topologyHandle: unique symbol;
/** An immutable Topology of the core, opaque to JavaScript. */
export interface TopologyHandle {
  readonly [topologyHandle]: true;
}

/** A copy of a part of some words. */
export function copyPart(words: Words, at: number, length: number): Words {
  // Most lists are short: `slice` is slower for them.
  if (length > 64) return words.slice(at, at + length);
  const list = new Uint32Array(length);
  for (let i = 0; i < length; i++) list[i] = words[at + i]!;
  return list;
}
