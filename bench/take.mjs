// Choosing CPUs by best fit.
import { kubeletTime, ownInput, prepared } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';

export const description = 'Topology.bestFit, packed and distributed, half of the machine free';

const INPUTS = [
  ['cpu-take-packed-8numa-512-64', 1000],
  ['cpu-take-packed-2s128-2', 150],
  ['cpu-take-distributed-8numa-512-64', 1500],
];

export async function run() {
  const rows = [];
  for (const [input, limit] of INPUTS) {
    const { call } = await prepared(ownInput(input));
    rows.push(await measured(input, call, { limit, kubeletNs: kubeletTime(input) }));
  }
  return rows;
}
