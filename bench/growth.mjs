// How the cost of an operation grows with what it does not concern, or with its own size: the
// exponent of the power law that fits its times best.
import { discover } from '../dist/entries/topology.js';
import { CpuSet, openManager } from '../dist/index.js';
import { growthExponent } from './support/growth-exponent.mjs';
import { COMMITTER, exclusivePod, MACHINES, newNode } from './support/nodes.mjs';
import { startPeer } from './support/peers.mjs';
import { cpuOf } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';
import { duration } from './support/units.mjs';

export const description = 'how costs grow: the exponent b of time = a * n^b, by least squares';
export const explanation = `
Least squares over the logarithms of n and of the least time of 12 or 40 rounds. *Last over first*
is the cost at the largest n over that at the smallest: a cost that grows only from some size on has
a small exponent and shows here. The remark has the times, of admissions in CPU time. All n take
turns, so that each gets the same speeds of the CPU.`;

const ROUND_MS = 4;
const WARM_UP_MS = 150;
const MIB = 2 ** 20;
const CPUS = 2048;
const NODES = [1, 2, 4, 8, 16, 32, 64];
const CPU_COUNTS = [2, 8, 32, 128, 512, 2048];

// The mean of as many calls as fit into a few milliseconds.
function timeOfCall(call, least = ROUND_MS) {
  const begin = performance.now();
  let calls = 0;
  let took = 0;
  while (took < least) {
    for (let i = 0; i < 4; i++) call();
    calls += 4;
    took = performance.now() - begin;
  }
  return (took * 1e6) / calls;
}

/**
 * A row of times at each n: `[n, measure]`, where `measure` returns nanoseconds. Takes all n in
 * turn, and keeps the least of each. An n of 0 has no logarithm, so it only counts for the last
 * time over the first.
 */
async function growth(name, subjects, rounds = 12) {
  const least = new Map(subjects.map(([n]) => [n, Number.POSITIVE_INFINITY]));
  for (let round = 0; round < rounds; round++) {
    for (const [n, measure] of subjects) least.set(n, Math.min(least.get(n), await measure()));
  }
  const points = [...least];
  return {
    name,
    exponent: growthExponent(points.filter(([n]) => n > 0)),
    lastOverFirst: points.at(-1)[1] / points[0][1],
    remark: [...least].map(([n, ns]) => `${n.toLocaleString('en')}: ${duration(ns)}`).join(', '),
  };
}

/** The same for synchronous calls, each warmed up. */
function growthOfCalls(name, subjects) {
  for (const [, call] of subjects) timeOfCall(call, WARM_UP_MS);
  return growth(
    name,
    subjects.map(([n, call]) => [n, () => timeOfCall(call)]),
    40,
  );
}

// The CPU time of an admission, the least of three: the first one finds cold caches.
async function admission({ manager }, commit) {
  const times = [];
  for (let i = 0; i < 3; i++) {
    await commit?.();
    let uid;
    times.push(await cpuOf(async () => ({ uid } = await manager.admit(exclusivePod()))));
    await manager.release(uid);
  }
  return Math.min(...times);
}

async function admissions() {
  const { path } = stateParents().at(-1);
  const machine = MACHINES.simulated;
  const [nodes, peers] = [new Map(), new Map()];
  const growthOf = (name, commitOf) =>
    growth(
      name,
      [...nodes].map(([n, node]) => [n, () => admission(node, commitOf?.(n))]),
    );
  try {
    for (const grants of [1, 10, 100, 1000]) nodes.set(grants, await newNode(path, machine, grants));
    for (let i = 0; i < 20; i++) await admission(nodes.get(1));
    const alone = await growthOf('admit alone, 1 to 1,000 grants');
    for (const [n, { stateDir }] of nodes) {
      peers.set(n, await startPeer({ stateDir, machine, options: COMMITTER }));
    }
    const commitOf = (n) => () => peers.get(n).call('commit');
    return [alone, await growthOf('admit after a foreign commit, 1 to 1,000 grants', commitOf)];
  } finally {
    for (const peer of peers.values()) await peer.close();
    for (const node of nodes.values()) node.close();
  }
}

/** Beside this many living owners. `subjectOf` a node: what `measure` measures. */
async function growthByOwners(name, counts, subjectOf, measure) {
  const { path } = stateParents().at(-1);
  const machine = MACHINES.simulated;
  const [nodes, peers, subjects] = [[], [], []];
  try {
    for (const owners of counts) {
      const node = await newNode(path, machine, 0);
      nodes.push(node);
      peers.push(await startPeer({ stateDir: node.stateDir, machine, owners, isOpen: false }));
      subjects.push([owners, await subjectOf(node)]);
    }
    return await measure(name, subjects);
  } finally {
    for (const peer of peers) await peer.close();
    for (const node of nodes) node.close();
  }
}

async function warmAdmission(node) {
  for (let i = 0; i < 20; i++) await admission(node);
  return () => admission(node);
}

// Plans of machines in memory

const OPTIONS = {
  policy: 'best-effort',
  topologyManagerPolicyOptions: { 'max-allowable-numa-nodes': 64 },
};

/** Plans of this many containers, each with slightly different amounts than the one before. */
function plans(manager, { containers = 1, limits = {} } = {}) {
  const pods = Array.from({ length: 8 }, (_, i) => ({
    containers: Array.from({ length: containers }, (_, container) => ({
      name: `container-${container}`,
      limits: { cpu: 1, memory: (1 + i) * MIB, ...limits },
    })),
  }));
  let next = 0;
  return () => {
    next = (next + 1) % pods.length;
    const plan = manager.plan(pods[next]);
    if (!plan.admitted) throw new Error('a pod is not admitted');
  };
}

const machineOf = (nodes, cpus) =>
  discover({ synthetic: `numa:${nodes}(memory=64GiB) core:${cpus / nodes / 2} pu:2` });

async function plansBy(name, counts, of) {
  const managers = [];
  try {
    const subjects = [];
    for (const n of counts) {
      const { topology, devices, ...asked } = await of(n);
      const manager = await openManager({ topology, ...OPTIONS });
      managers.push(manager);
      if (devices) manager.registerDevices('example.com/nic', devices);
      subjects.push([n, plans(manager, asked)]);
    }
    return await growthOfCalls(name, subjects);
  } finally {
    for (const manager of managers) manager.close();
  }
}

async function withDevices(count) {
  const devices = Array.from({ length: count }, (_, i) => ({ id: `nic-${i}`, numaNodes: [i % 2] }));
  const limits = count > 0 ? { 'example.com/nic': 1 } : {};
  return { topology: await machineOf(2, 128), devices, limits };
}

async function takesBy(name, counts, of) {
  const subjects = [];
  for (const n of counts) {
    const { topology, count } = await of(n);
    // All but one CPU, a different one each time.
    const sets = topology.cpus
      .toArray()
      .slice(0, 8)
      .map((cpu) => topology.cpus.difference(CpuSet.of(cpu)));
    let next = 0;
    subjects.push([
      n,
      () => {
        next = (next + 1) % sets.length;
        topology.bestFit(sets[next], count);
      },
    ]);
  }
  return growthOfCalls(name, subjects);
}

export async function run() {
  return [
    ...(await admissions()),
    await growthByOwners('admit, 0 to 64 living owners', [0, 1, 8, 64], warmAdmission, growth),
    await plansBy('plan, 2 to 2,048 CPUs', CPU_COUNTS, async (n) => ({ topology: await machineOf(1, n) })),
    await plansBy('plan, 1 to 64 NUMA nodes', NODES, async (n) => ({ topology: await machineOf(n, CPUS) })),
    await plansBy('plan, 1 to 64 containers', [1, 4, 16, 64], async (containers) => ({
      topology: await machineOf(2, 128),
      containers,
    })),
    await plansBy('plan, 0 to 512 devices', [0, 1, 8, 64, 512], withDevices),
    await growthByOwners(
      'plan, 0 to 32 foreign owners',
      [0, 1, 8, 32],
      ({ manager }) => plans(manager),
      growthOfCalls,
    ),
    await takesBy('take, 2 to 2,048 CPUs', CPU_COUNTS, async (n) => ({
      topology: await machineOf(1, n),
      count: 1,
    })),
    await takesBy('take, 1 to 64 NUMA nodes', NODES, async (n) => ({
      topology: await machineOf(n, CPUS),
      count: 64,
    })),
  ];
}
