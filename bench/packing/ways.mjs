// Ways to place requests, each with the options of its managers.
import { undivided } from './machines.mjs';

const POLICY = { topologyManagerPolicy: 'single-numa-node' };

/** All are compared with the first. `machineOf`: the machine that it packs instead. */
export const WAYS = [
  { name: 'kubelet', options: POLICY },
  // What is left to gain for any placement.
  { name: 'one node', options: POLICY, machineOf: undivided },
];
