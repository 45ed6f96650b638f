// Refreshes a topology when CPUs come online.
import { native } from '../base/native.js';
import { CpuSet } from './cpu-set.js';
import { discoverMachine } from './discovery.js';
import { readOnlineCpus } from './online-cpus.js';
import { Topology } from './topology.js';

/**
 * The machine as it is now if CPUs are online that `current` does not have; else undefined. CPUs
 * that went offline do not count: their location is known if they come back. What the process may
 * use stays, even if its cpuset is narrower now. Described machines do not change.
 * @throws as {@link discoverMachine}
 */
export async function refreshTopology(current: Topology): Promise<Topology | undefined> {
  if (current.isSimulated || (readOnlineCpus() ?? CpuSet.EMPTY).isSubsetOf(current.cpus)) return undefined;
  const found = await discoverMachine(false);
  // The CPUs may be offline again by now.
  if (found.cpus.isSubsetOf(current.cpus)) return undefined;
  return allowing(found, current.allowed);
}

/** The same machine for a process that may use these CPUs too. */
export function allowing(topology: Topology, cpus: CpuSet): Topology {
  const allowed = topology.allowed.union(cpus.intersection(topology.cpus));
  if (allowed.equals(topology.allowed)) return topology;
  return new Topology(
    topology.source,
    native.createTopology({ ...native.describeTopology(topology.handle), allowed: allowed.words }),
  );
}

/**
 * Refreshes the topology of a host for all its users. Returns the new CPUs. Calls may overlap.
 * @throws as {@link discoverMachine}
 */
export async function refreshHost(host: { topology: Topology }): Promise<CpuSet> {
  const before = host.topology;
  const found = await refreshTopology(before);
  if (!found || host.topology !== before) return CpuSet.EMPTY;
  host.topology = found;
  return found.cpus.difference(before.cpus);
}
