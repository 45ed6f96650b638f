// The CPU Manager: which CPUs a container gets. Pure.
import type { Placement } from '../config.js';
import { CpuSet, type NodeSet } from '../cpu-set.js';
import { NumalignError } from '../errors.js';
import type { TopologyHint } from '../hints.js';
import { type Assignments, cpusOf, freeCpus, sharedPool, universe } from '../state/assignments.js';
import type { Topology } from '../topology.js';

export interface CpuRequest {
  readonly cpu: number;
  readonly placement: Placement;
}

function cpusOfNodes(topology: Topology, nodes: NodeSet): CpuSet {
  return topology.nodes.filter(({ id }) => nodes.has(id)).reduce((cpus, node) => cpus.union(node.cpus), CpuSet.EMPTY);
}

// For messages.
function freePerNode(topology: Topology, free: CpuSet): Record<string, string> {
  return Object.fromEntries(topology.nodes.map(({ id, cpus }) => [id, cpus.intersection(free).toString()]));
}

/**
 * Takes CPUs for one container: those of the hint's NUMA nodes first, then any.
 * @throws ERR_INSUFFICIENT_CPUS, ERR_SHARED_POOL_EMPTY
 */
export function allocateCpus(
  topology: Topology,
  state: Assignments,
  { cpu: count, placement }: CpuRequest,
  hint: TopologyHint,
  allowed: CpuSet,
): CpuSet {
  const online = topology.cpus;
  const free = freeCpus(state, online);
  const usable = free.intersection(allowed);
  if (usable.size < count) throw insufficient(topology, state, count, free, allowed);
  const pool = sharedPool(state, online);
  if (pool.isSubsetOf(usable) && usable.size === count) throw poolEmpty(count, pool);

  const take = (from: CpuSet, n: number) =>
    topology.bestFit(from, n, {
      strategy: placement.distributeAcrossCores ? 'spread' : 'packed',
      distributeAcrossNuma: placement.distributeAcrossNuma,
      preferAlignByUncoreCache: placement.preferAlignByUncoreCache,
    });
  const near = hint.nodes === null ? usable : usable.intersection(cpusOfNodes(topology, hint.nodes));
  const aligned = take(near, Math.min(near.size, count));
  return aligned.union(take(usable.difference(aligned), count - aligned.size));
}

function insufficient(
  topology: Topology,
  state: Assignments,
  count: number,
  free: CpuSet,
  allowed: CpuSet,
): NumalignError {
  const managed = universe(state.settings, topology.cpus);
  const reserved = state.settings.reservedSystemCPUs.intersection(managed);
  const usable = free.intersection(allowed);
  const holders = state.pods.map((pod) => ({
    id: pod.uid,
    name: pod.name,
    cpus: cpusOf(pod).toString(),
    pid: pod.owner.pid,
  }));
  const beyond = free.difference(allowed);
  const parts = [
    `exclusive CPUs asked for: ${count}, free: ${usable.size}${usable.isEmpty ? '' : ` (${usable})`} of ${managed}`,
    ...(reserved.isEmpty ? [] : [`reserved: ${reserved}`]),
    ...holders.map(({ name, cpus, pid }) => `held by "${name}"${pid === null ? '' : ` of process ${pid}`}: ${cpus}`),
    ...(beyond.isEmpty ? [] : [`outside the cpuset of this process: ${beyond}`]),
  ];
  return new NumalignError('ERR_INSUFFICIENT_CPUS', parts.join('; '), {
    value: count,
    valid: admissible(usable, sharedPool(state, topology.cpus)),
    free: freePerNode(topology, free),
    reserved: reserved.toString(),
    holders,
  });
}

// How many CPUs one grant can have at most: all that are free, unless that leaves nothing to share.
function admissible(usable: CpuSet, pool: CpuSet): string {
  const most = usable.size - (pool.isSubsetOf(usable) ? 1 : 0);
  return most > 0 ? `1 to ${most}` : 'none at present';
}

function poolEmpty(count: number, pool: CpuSet): NumalignError {
  return new NumalignError(
    'ERR_SHARED_POOL_EMPTY',
    `${count} exclusive CPUs would take the last of the shared pool (${pool}), where everything else runs: ask for fewer`,
    { value: count, valid: admissible(pool, pool), sharedPool: pool.toString() },
  );
}
