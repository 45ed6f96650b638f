// What sets and machines are to the addon.

/** A set as it crosses the boundary: 32-bit words, lowest ids first, the last word not zero. */
export type Words = Uint32Array;

declare const topologyHandle: unique symbol;
/** An immutable Topology of the core, opaque to JavaScript. */
export interface TopologyHandle {
  readonly [topologyHandle]: true;
}
