// What distance costs: how long two CPUs take to pass a cache line to each other and back, and how
// long a load from the memory of a node takes.
import { Worker } from 'node:worker_threads';
import { affinity } from '../dist/entries/diagnostics.js';
import { discover } from '../dist/entries/topology.js';
import { CpuSet, pinThread } from '../dist/index.js';
import { row } from './support/measure.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'a cache line from CPU to CPU and back, and memory by NUMA node';
export const explanation = `
Two pinned threads hand a cache line to each other and back, for one pair of CPUs of each relation.
Memory is read by dependent loads in 256 MiB of large pages, for one NUMA node at each distance. In
a virtual machine the hypervisor places the CPUs, and may move them: one round trip took 54 ns in
one run and 317 ns in another.`;

const TIMES = 5000;
// More than caches can hold.
const BYTES = 256 * 2 ** 20;

// From near to far.
const RELATIONS = [
  ['same core', (a, b) => a.package === b.package && a.core === b.core],
  ['same L3', (a, b) => a.l3 >= 0 && a.l3 === b.l3],
  ['same NUMA node', (a, b) => a.node === b.node],
  ['same package', (a, b) => a.package === b.package],
  ['other package', () => true],
];

/** The first two CPUs of each relation. */
export function pairsOf(cpus) {
  const pairs = new Map();
  for (const a of cpus) {
    for (const b of cpus) {
      if (b.cpu <= a.cpu) continue;
      const [relation] = RELATIONS.find(([, holds]) => holds(a, b));
      if (!pairs.has(relation)) pairs.set(relation, [a.cpu, b.cpu]);
    }
  }
  return RELATIONS.flatMap(([relation]) =>
    pairs.has(relation) ? [{ relation, pair: pairs.get(relation) }] : [],
  );
}

async function roundTrips([near, far]) {
  const cell = new Uint32Array(new SharedArrayBuffer(256));
  const workerData = { cpu: far, cell, times: TIMES };
  const worker = new Worker(new URL('support/ping-pong.mjs', import.meta.url), { workerData });
  const ended = new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));
  pinThread(CpuSet.of(near));
  const times = new Float64Array(TIMES);
  await new Promise((resolve) => worker.once('online', resolve));
  yardstick.pingPong(times, cell, 0);
  await ended;
  return times;
}

/**
 * The first node with CPUs of this process, and for each distance from it the first node with
 * memory.
 */
export function memoriesOf({ nodes }, cpus) {
  const home = nodes.find((node) => cpus.some((location) => location.node === node.id));
  const distance = (i) => home.distances?.[i] ?? (nodes[i] === home ? 10 : 20);
  const byDistance = new Map();
  for (const [i, node] of nodes.entries()) {
    if (node.memoryBytes > 0 && !byDistance.has(distance(i))) byDistance.set(distance(i), node.id);
  }
  return { home, memories: [...byDistance].sort(([a], [b]) => a - b) };
}

function latencies(cpu, node) {
  pinThread(CpuSet.of(cpu));
  const times = new Float64Array(TIMES);
  yardstick.memoryLatency(times, BYTES, node);
  return times;
}

// Compared with the nearest, which is the first.
function rowsOf(all, what) {
  return all.map(({ name, times, remark }) => ({
    ...row(name, { samples: times, others: all[0].times }, { yardstick: what }),
    remark,
  }));
}

export async function run() {
  const machine = await discover();
  const before = affinity();
  const cpus = machine.locations.filter(({ cpu }) => before.has(cpu));
  try {
    const trips = [];
    for (const { relation, pair } of pairsOf(cpus)) {
      trips.push({ name: `CPU ${pair.join(' and ')}: ${relation}`, times: await roundTrips(pair) });
    }
    const { home, memories } = memoriesOf(machine, cpus);
    const [cpu] = cpus.filter(({ node }) => node === home.id).map((location) => location.cpu);
    const remark =
      machine.nodes.length === 1 ? 'the machine has one NUMA node: no other to compare with' : '';
    const loads = memories.map(([distance, node]) => ({
      name: `CPU ${cpu} of node ${home.id}, memory of node ${node}: distance ${distance}`,
      times: latencies(cpu, node),
      remark,
    }));
    return [...rowsOf(trips, 'nearest'), ...rowsOf(loads, 'nearest')];
  } finally {
    pinThread(before);
  }
}
