// Ways to place requests: the nodes of a simulation for a machine.
import { ArrangedNode } from './arranged-node.mjs';
import { undivided } from './machines.mjs';
import { PackedNode } from './packed-node.mjs';

const KUBELET = { policy: 'single-numa-node' };
const JOINT = { ...KUBELET, placement: 'joint' };

const packed = (options, maxMoves = 0) => ({
  maxMoves,
  nodeOf: (machine) => PackedNode.of(machine, options, maxMoves),
});

/** As many moves as it takes: what the ways with fewer moves are compared with. */
export const ANY_MOVES = {
  name: 'any moves',
  maxMoves: Number.POSITIVE_INFINITY,
  nodeOf: (machine) => new ArrangedNode(machine),
};

/** All are compared with the first. `maxMoves`: how many grants may move for a request. */
export const WAYS = [
  { name: 'kubelet', ...packed(KUBELET) },
  { name: 'kubelet, 2 moves', ...packed(KUBELET, 2) },
  { name: 'joint', ...packed(JOINT) },
  { name: 'joint, 1 move', ...packed(JOINT, 1) },
  { name: 'joint, 2 moves', ...packed(JOINT, 2) },
  ANY_MOVES,
  { name: 'one node', maxMoves: 0, nodeOf: (machine) => PackedNode.of(undivided(machine), KUBELET) },
];
