// Ways to place requests, each with its manager options.
import { undivided } from './machines.mjs';

const KUBELET = { topologyManagerPolicy: 'single-numa-node' };
const JOINT = { ...KUBELET, placement: 'joint' };

/**
 * All are compared with the first. `maxMoves`: how many grants may move for a request; `machineOf`:
 * the machine to use instead.
 */
export const WAYS = [
  { name: 'kubelet', options: KUBELET },
  { name: 'joint', options: JOINT },
  { name: 'dynamic, 1 move', options: JOINT, maxMoves: 1 },
  { name: 'dynamic, 2 moves', options: JOINT, maxMoves: 2 },
  { name: 'one node', options: KUBELET, machineOf: undivided },
];
