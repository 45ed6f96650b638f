// Merging topology hints: in the form of the package's own providers, and as JavaScript objects.

import { discover, mergeHints } from '../dist/entries/topology.js';
import { CpuSet } from '../dist/index.js';
import { ownInput, prepared } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';
import { inTurn, randomNumbers, someOf } from './support/random.mjs';

export const description =
  'mergeHints: four lists of all sets of 8 nodes, two of 2 nodes, and hints packed from objects';

const SETS = 256;

// Lists as Topology.cpuHints makes them, in sets of this many. Some CPUs of each node are free,
// mostly enough of them, and no two lists are equal.
async function packedLists(nodes, lists, random) {
  const machine = await discover({ synthetic: `package:2 numa:${nodes / 2} core:32 pu:2` });
  const list = () => {
    const free = machine.nodes.reduce(
      (cpus, { cpus: nodeCpus }) => cpus.union(CpuSet.from(someOf(nodeCpus, 4 + random(30), random))),
      CpuSet.EMPTY,
    );
    return machine.cpuHints({ request: 1 + random(8), available: free });
  };
  return Array.from({ length: SETS }, () =>
    Array.from({ length: lists }, (_, i) => ({ [`resource${i}`]: list() })),
  );
}

async function packed(name, nodes, lists) {
  const next = inTurn(await packedLists(nodes, lists, randomNumbers(nodes)));
  const options = { policy: 'best-effort', numaNodes: Array.from({ length: nodes }, (_, i) => i) };
  return measured(name, () => mergeHints(next(), options));
}

async function fromObjects(input) {
  const { call, hints, kubelet } = await prepared(ownInput(input));
  const row = await measured(`${input}, hint objects`, call, { kubelet });
  return {
    ...row,
    hints,
    hintE: row.ratio / hints,
    remark: `${Math.round(row.medianNs / hints)} ns a hint`,
  };
}

export const run = async () => [
  await packed('8 nodes x 4 lists', 8, 4),
  await packed('2 nodes x 2 lists', 2, 2),
  await fromObjects('hint-merge-n8-r4-k1'),
  await fromObjects('hint-merge-n8-r4-k4'),
  await fromObjects('hint-merge-n2-r2-k1'),
];
