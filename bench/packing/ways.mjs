// Ways to place requests, each with the options of its managers.
import { undivided } from './machines.mjs';

const KUBELET = { topologyManagerPolicy: 'single-numa-node' };

/** All are compared with the first. `machineOf`: the machine that it packs instead. */
export const WAYS = [
  { name: 'kubelet', options: KUBELET },
  { name: 'one node', options: KUBELET, machineOf: undivided },
];
