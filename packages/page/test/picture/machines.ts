// Machines for pictures, with holders.
import { CpuSet } from 'numalign';
import { DEFAULT_GATES } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { DEFAULT_VERSION } from '../../../../lib/base/kubelet-features.js';
import type { Settings } from '../../../../lib/decision/machine-settings.js';
import { memoryTables } from '../../../../lib/decision/memory/memory-tables.js';
import { emptyState } from '../../../../test/support/empty-state.js';
import type { Holder, Holdings } from '../../lib/picture/holdings.js';

export const OF_8_CPUS = 'package:2 [numa(memory=8GiB)] core:2 pu:2';
export const OF_512_CPUS = 'package:2 die:4 [numa(memory=64GiB)] l3:4 core:8 pu:2';

export function holder(name: string, cpus: string, others: Partial<Holder> = {}): Holder {
  return { name, cpus: CpuSet.parse(cpus), memory: [], devices: {}, isHighlighted: false, ...others };
}

export function settingsOn(managed: CpuSet, reserved = '', isolated = ''): Settings {
  return {
    managedCPUs: managed,
    reservedSystemCPUs: CpuSet.parse(reserved),
    strictCPUReservation: false,
    isolatedCPUs: CpuSet.parse(isolated),
    reservedMemory: {},
    cgroupRoot: null,
    kubeletVersion: DEFAULT_VERSION,
    featureGates: DEFAULT_GATES[DEFAULT_VERSION],
  };
}

export function holdingsOn(topology: Topology, others: Partial<Holdings> = {}): Holdings {
  return {
    holders: [],
    settings: settingsOn(topology.cpus),
    memory: memoryTables(emptyState(true), topology),
    ...others,
  };
}

/** Grants of 1 to 16 CPUs each, until there is no room. */
export function manyHolders({ cpus }: Topology): Holder[] {
  const ids = [...cpus];
  const holders: Holder[] = [];
  for (let first = 0, size = 1; first + size <= ids.length; first += size, size = (size % 16) + 3) {
    const own = CpuSet.from(ids.slice(first, first + size));
    holders.push(
      holder(`service-${holders.length}`, String(own), { isHighlighted: holders.length % 3 === 0 }),
    );
  }
  return holders;
}
