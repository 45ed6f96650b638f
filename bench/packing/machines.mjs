// Machines to pack grants on, described by what each NUMA node has for grants. The system has two
// more CPUs of each node.
import { discover } from '../../dist-test/lib/entries/topology.js';

export const GIB = 2 ** 30;
export const GPU = 'example.com/gpu';

const SYSTEM_CPUS = 2;
const MEMORY_PER_CPU = 8 * GIB;

// From a NUMA node to itself, to another one of its package, and to one of another package.
const [LOCAL, NEAR, FAR] = [10, 12, 20];

/** `cpus`: of each node; `gpus`: of each node. */
export const MACHINES = [
  { name: '2 x 48, GPUs on both', cpus: 48, gpus: [4, 4], packages: 2 },
  { name: '2 x 48, GPUs on one', cpus: 48, gpus: [8, 0], packages: 2 },
  { name: '8 x 16', cpus: 16, gpus: Array(8).fill(1), packages: 2 },
];

export const cpusOf = ({ cpus, gpus }) => cpus * gpus.length;

/** The same machine as one NUMA node: no placement could admit what it rejects. */
export function undivided(machine) {
  const gpus = machine.gpus.reduce((sum, count) => sum + count);
  return { ...machine, cpus: cpusOf(machine), gpus: [gpus], packages: 1 };
}

const memoryOf = (cpus) => cpus * MEMORY_PER_CPU;

/** The capacity of each NUMA node. */
export const capacities = ({ cpus, gpus }) => gpus.map((gpu) => ({ cpu: cpus, memory: memoryOf(cpus), gpu }));

/** Whether a request fits into what is free. */
export const hasRoom = (free, { cpu, memory, gpu }) =>
  cpu <= free.cpu && memory <= free.memory && gpu <= free.gpu;

/** Its `topology`, the CPUs that are `reserved` for the system, and its GPUs as `devices`. */
export async function simulated({ cpus, gpus, packages }) {
  const perNode = cpus + SYSTEM_CPUS;
  const packageOf = (node) => Math.trunc((node * packages) / gpus.length);
  const distance = (a, b) => (a === b ? LOCAL : packageOf(a) === packageOf(b) ? NEAR : FAR);
  const nodes = [...gpus.keys()];
  const cpusOfNode = (node) =>
    Array.from({ length: perNode }, (_, i) => node * perNode + i).map((cpu) => [
      ...[cpu, cpu >> 1, packageOf(node), node],
    ]);
  const json = {
    columns: ['cpu', 'core', 'socket', 'numa'],
    cpus: nodes.flatMap(cpusOfNode),
    nodes: nodes.map((id) => ({
      id,
      distances: nodes.map((other) => distance(id, other)),
      memory: memoryOf(cpus),
    })),
  };
  const gpusOfNode = (node) =>
    Array.from({ length: gpus[node] }, (_, i) => ({ id: `gpu-${node}-${i}`, numaNodes: [node] }));
  return {
    topology: await discover({ json }),
    reserved: nodes.map((node) => `${node * perNode}-${node * perNode + SYSTEM_CPUS - 1}`).join(','),
    devices: nodes.flatMap(gpusOfNode),
  };
}
