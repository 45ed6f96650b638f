// Hints for CPUs on a large machine.
import { ownInput, prepared } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';

export const description = 'Topology.cpuHints: 8 nodes, 512 CPUs, half of them free';

async function hints(input) {
  const { call, kubelet } = await prepared(ownInput(input));
  return measured(input, call, { kubelet });
}

export const run = async () => [await hints('cpu-hints-8numa-512-2'), await hints('cpu-hints-8numa-512-64')];
