// The forms of sets and machines that the addon takes.

/** A set as it crosses the boundary: 32-bit words, lowest ids first, the last word not zero. */
export type Words = Uint32Array;

declare const topologyHandle: unique symbol;
/** An immutable Topology of the core, opaque to JavaScript. */
export interface TopologyHandle {
  readonly [topologyHandle]: true;
}

/** A part of some words, as words of its own. */
export function copied(words: Words, at: number, length: number): Words {
  // `slice` takes longer for lists as short as most are.
  if (length > 64) return words.slice(at, at + length);
  const list = new Uint32Array(length);
  for (let i = 0; i < length; i++) list[i] = words[at + i]!;
  return list;
}
