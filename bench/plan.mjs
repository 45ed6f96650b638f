// Planning a pod: hints, merge, allocation. Each call uses another manager than the one before,
// with other grants in its state, so nothing is cached.
import { discover } from '../dist/entries/topology.js';
import { managersOf, ownInput, podOf, prepared } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';
import { inTurn, randomNumbers } from './support/random.mjs';

export const description =
  'Manager.plan: CPUs, memory and a device on 2 and 8 nodes, prepared and joint too; CPUs and memory on this machine, 34 and 64 nodes';

const GIB = 2 ** 30;

async function recorded(name, input, placement) {
  const { config, ...rest } = ownInput(input);
  const { call, again, close, kubelet } = await prepared({ ...rest, config: { ...config, ...placement } });
  try {
    if (!call().admitted) throw new Error(`${name} is not admitted`);
    const row = await measured(name, call, { kubelet });
    return again ? [row, await measured(`${name}, prepared, nothing changed`, again)] : [row];
  } finally {
    close();
  }
}

/** The same, with NUMA nodes chosen jointly, which earlier builds cannot do. */
const joint = (name, input) =>
  recorded(`${name}, joint`, input, { placement: 'joint' }).then(
    ([row]) => [row],
    (error) => {
      if (error.code === 'ERR_INVALID_OPTION') return [];
      throw error;
    },
  );

// `cpus`: of each node.
function manyNodes(cpus, random) {
  let next = 0;
  const rows = cpus.flatMap((count, node) =>
    Array.from({ length: count }, () => [next, next++, node, node, node, node]),
  );
  return {
    numCpus: rows.length,
    columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache', 'die'],
    cpus: rows,
    nodes: cpus.map((_, id) => ({ id, memory: (32 + random(64)) * GIB })),
  };
}

/** CPUs and memory on a machine with many nodes, each with a different amount free. */
async function large(name, cpusOf, amounts) {
  const random = randomNumbers(7);
  const topology = await discover({ json: manyNodes(cpusOf(random), random) });
  const others = () =>
    Array.from({ length: 12 }, (_, i) =>
      podOf({ cpu: 1 + random(3), memory: (1 + random(amounts.others)) * GIB }, `other-${i}`),
    );
  const options = {
    policy: 'best-effort',
    topologyManagerPolicyOptions: { 'max-allowable-numa-nodes': 64 },
  };
  const { managers, close } = await managersOf(topology, options, [], others, random);
  const pods = Array.from({ length: 64 }, () =>
    podOf({ cpu: amounts.cpu + random(6), memory: (amounts.gib + random(10)) * GIB }),
  );
  const [manager, pod] = [inTurn(managers), inTurn(pods)];
  const call = () => manager().plan(pod());
  try {
    const answers = Array.from({ length: 256 }, call);
    const isExact = answers.every(({ admitted, exact }) => admitted && exact);
    const row = await measured(name, call);
    return { ...row, inexact: isExact ? 0 : 1, remark: isExact ? 'all exact' : 'NOT all exact or admitted' };
  } finally {
    close();
  }
}

export async function run() {
  const two = () => Array.from({ length: 34 }, (_, node) => (node < 2 ? 32 : 0));
  const all = (random) => Array.from({ length: 64 }, () => 4 + random(12));
  return [
    ...(await recorded('2 nodes', 'admit-n2-nockpt')),
    ...(await joint('2 nodes', 'admit-n2-nockpt')),
    ...(await recorded('8 nodes', 'admit-n8-nockpt')),
    ...(await joint('8 nodes', 'admit-n8-nockpt')),
    await large('34 nodes, 2 with CPUs', two, { cpu: 4, gib: 4, others: 1 }),
    await large('64 nodes', all, { cpu: 20, gib: 150, others: 20 }),
  ];
}
