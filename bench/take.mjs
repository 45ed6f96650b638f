// Choosing CPUs by best fit.
import { ownInput, prepared } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';

export const description = 'Topology.bestFit, packed and distributed, half of the machine free';

const INPUTS = [
  'cpu-take-packed-8numa-512-64',
  'cpu-take-packed-2s128-2',
  'cpu-take-distributed-8numa-512-64',
];

export async function run() {
  const rows = [];
  for (const input of INPUTS) {
    const { call, kubelet } = await prepared(ownInput(input));
    rows.push(await measured(input, call, { kubelet }));
  }
  return rows;
}
