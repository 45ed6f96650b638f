// Zones: what each NUMA node has of every resource, and how much of it a pod can still get. Pure.
// Invariant: take a Guaranteed pod under the policy single-numa-node that asks for the available
// amount of a resource on a node, and for nothing else that is scarce. numalign's plan admits it
// there; with one more unit it does not.
import type { CpuSet, ManagerView, Settings } from 'numalign';
import type { Planner } from 'numalign/diagnostics';
import type { NumaNode, Topology } from 'numalign/topology';
import type { ResourceInfo, Zone } from './node-resource-topology.js';

/** What zones are computed from. */
export interface ZoneFacts {
  readonly topology: Topology;
  readonly settings: Settings;
  readonly placement: ManagerView['placement'];
  /** What is free at one moment. */
  readonly free: Pick<Planner, 'freeCpus' | 'sharedPool' | 'memory' | 'devices'>;
}

/** @throws like {@link ManagerView.planner}: ERR_STATE_CORRUPT, ERR_MANAGER_CLOSED */
export function zonesOf(
  manager: ManagerView,
  placement: ManagerView['placement'] = manager.placement,
): Zone[] {
  const free = manager.planner();
  return zones({
    topology: manager.topology,
    settings: manager.settings(),
    placement,
    free,
  });
}

// NodeResourceTopologyMatch ends at the zone node-64, and skips those after it.
const MOST_ID = 63;

/**
 * One zone per NUMA node that a scheduler reads, ascending. Resources that a node does not have are
 * left out.
 */
export function zones(facts: ZoneFacts): Zone[] {
  const { nodes } = facts.topology;
  const isRead = ({ id }: NumaNode) => id <= MOST_ID;
  return nodes.filter(isRead).map((node) => {
    const costs = node.distances
      ?.map((value, i) => ({ node: nodes[i]!, value }))
      .filter((cost) => isRead(cost.node))
      .map(({ node, value }) => ({ name: zoneName(node), value }));
    return {
      name: zoneName(node),
      type: 'Node',
      ...(costs && { costs }),
      resources: [...cpus(node, facts), ...memory(node, facts), ...devices(node, facts)],
    };
  });
}

const zoneName = ({ id }: NumaNode) => `node-${id}`;

function resource(name: string, capacity: number, allocatable: number, available: number): ResourceInfo {
  return {
    name,
    capacity: String(capacity),
    allocatable: String(allocatable),
    available: String(available),
  };
}

function cpus(node: NumaNode, facts: ZoneFacts): ResourceInfo[] {
  if (node.cpus.isEmpty) return [];
  const { managedCPUs, reservedSystemCPUs, isolatedCPUs } = facts.settings;
  // Isolated CPUs only go to pods that ask for them, which the cluster's scheduler cannot see.
  const allocatable = managedCPUs
    .difference(reservedSystemCPUs)
    .difference(isolatedCPUs)
    .intersection(node.cpus);
  return [resource('cpu', node.cpus.size, allocatable.size, availableCpus(node, facts))];
}

function availableCpus(node: NumaNode, { topology, placement, free }: ZoneFacts): number {
  const { cpuManagerPolicy = 'static', cpuManagerPolicyOptions: options = {} } = placement;
  const all = free.freeCpus().intersection(node.cpus);
  // Under this policy nothing is exclusive, and nothing is refused.
  if (cpuManagerPolicy === 'none') return all.size;
  // One CPU stays for everything else.
  const isLast = free.sharedPool().isSubsetOf(all);
  const most = isLast ? Math.max(0, all.size - 1) : all.size;
  return options['full-pcpus-only'] === true ? inWholeCores(topology, all, most) : most;
}

// A request must be a multiple of a core's threads. The sums of cores with different sizes may not
// include every multiple.
function inWholeCores({ cores, cpusPerCore }: Topology, from: CpuSet, most: number): number {
  let sums = 1n;
  for (const core of cores) {
    if (core.cpus.isSubsetOf(from)) sums |= sums << BigInt(core.cpus.size);
  }
  for (let count = most - (most % cpusPerCore); count > 0; count -= cpusPerCore) {
    if ((sums >> BigInt(count)) & 1n) return count;
  }
  return 0;
}

function memory(node: NumaNode, { placement, free }: ZoneFacts): ResourceInfo[] {
  const isBooked = placement.memoryManagerPolicy !== 'None';
  // Pods get memory of other tiers only if they ask for it, which no scheduler knows.
  const isOffered = [placement.memoryTiers].flat().some((tier) => tier === 'any' || tier === node.tier);
  return free
    .memory()
    .filter((table) => table.node === node.id && table.total > 0)
    .map(({ type, total, allocatable, free: remaining, group }) => {
      // Of nodes that share an allocation, none can provide memory alone.
      const left = group.length > 1 || !isOffered ? 0 : remaining;
      const available = isBooked ? left : allocatable;
      return resource(type, total, allocatable, available);
    });
}

// A device near several nodes counts on each. A device without a near node, or a resource without
// any known place, is in no zone: the cluster's scheduler then uses the whole machine.
function devices(node: NumaNode, { free }: ZoneFacts): ResourceInfo[] {
  const near = free.devices().filter(({ numaNodes }) => numaNodes?.includes(node.id));
  const names = [...new Set(near.map((device) => device.resource))];
  return names.map((name) => {
    const sameResource = near.filter((device) => device.resource === name);
    const healthy = sameResource.filter((device) => device.healthy);
    const available = sameResource.filter((device) => device.free);
    return resource(name, sameResource.length, healthy.length, available.length);
  });
}
