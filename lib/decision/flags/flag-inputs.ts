// FlagInputs: what the flags of all pods depend on, in a form that can be compared. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../../account/assignments.js';
import type { BookedMemory } from '../../account/booked-memory.js';
import type { KubeletRecord } from '../../account/kubelet-record.js';
import { memoryOfPods } from '../../account/memory-of-pods.js';
import type { CpuIdentity } from '../../account/pod-assignment.js';
import type { CpuSnapshot } from '../../account/pools.js';
import type { Topology } from '../../machine/topology.js';
import type { DeviceResource } from '../devices/device-resources.js';
import { type HugepagesTaken, hugepagesTaken } from '../memory/hugepages-taken.js';
import { allocatableOn, isMemoryKnown } from '../memory/memory-tables.js';
import type { FlagFacts } from './flags.js';
import { poolShortage } from './shared-pool-short.js';

/** The input of every pod's flags, besides the pod and the settings. */
export interface FlagInputs {
  readonly topology: Topology;
  readonly present: CpuSnapshot;
  /** The CPUs on record. */
  readonly cpus: readonly CpuIdentity[];
  readonly resources: readonly DeviceResource[];
  /**
   * The booked memory, if it exceeds the machine's somewhere; else null, and no flag depends on it.
   */
  readonly scarce: BookedMemory | null;
  /** The flags of hugepages. */
  readonly taken: readonly HugepagesTaken[];
  /** The shortage of the shared pool; null if there is none. */
  readonly short: ReturnType<typeof poolShortage> | null;
  readonly kubelet: KubeletRecord | null;
}

export function flagInputs({ state, topology, resources, present, hugepages }: FlagFacts): FlagInputs {
  const { cpus, memory, pods, kubelet } = state;
  const shortage = poolShortage(state, present);
  const isScarce = isMemoryKnown(topology) && isOverbooked(state, topology);
  return {
    topology,
    present,
    cpus,
    resources: [...resources.values()],
    scarce: isScarce ? memory : null,
    taken: hugepages.size === 0 ? [] : hugepagesTaken(memoryOfPods(pods), state, topology, hugepages),
    short: shortage.missing > 0 ? shortage : null,
    kubelet,
  };
}

function isOverbooked({ memory, settings }: Assignments, topology: Topology): boolean {
  return Object.entries(memory).some(([id, types]) => {
    const node = topology.nodes.find((each) => each.id === Number(id));
    return Object.entries(types).some(
      ([type, bytes]) => bytes > (node ? allocatableOn(node, type, settings) : 0),
    );
  });
}

/** True if unchanged pods and settings have the same flags on both. */
export function haveSameFlags(a: FlagInputs, b: FlagInputs): boolean {
  return (
    a.topology === b.topology &&
    a.present.online.equals(b.present.online) &&
    a.present.isolated.equals(b.present.isolated) &&
    (a.cpus === b.cpus || isDeepStrictEqual(a.cpus, b.cpus)) &&
    isDeepStrictEqual(a.scarce, b.scarce) &&
    isDeepStrictEqual([a.taken, a.short], [b.taken, b.short]) &&
    (a.kubelet === b.kubelet || isDeepStrictEqual(a.kubelet?.pods, b.kubelet?.pods)) &&
    a.resources.length === b.resources.length &&
    a.resources.every((resource, i) => resource === b.resources[i])
  );
}
