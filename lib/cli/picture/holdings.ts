// Who holds what of a machine, as its picture shows it. Pure.
import type { Assignments } from '../../account/assignments.js';
import { cpusOf, devicesOf, memoryOf } from '../../account/pod-assignment.js';
import { type CpuSnapshot, isolatedPool, universe } from '../../account/pools.js';
import { memoryTables } from '../../decision/memory-tables.js';
import type { Topology } from '../../entries/topology.js';
import type { MemoryBlock, MemoryTable, PodContainer } from '../../index.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { StateView } from '../pages/state-view.js';
import { shownIdLength } from '../pages/status-text.js';

export interface Holder {
  readonly name: string;
  /** Kept from others, whether anything runs on them or not. */
  readonly cpus: CpuSet;
  readonly memory: readonly MemoryBlock[];
  readonly devices: PodContainer['devices'];
  /** What else is to be told of it. */
  readonly note?: string;
  /** It is what the picture is about. */
  readonly isHighlighted: boolean;
}

export interface Holdings {
  readonly holders: readonly Holder[];
  readonly managed: CpuSet;
  readonly reserved: CpuSet;
  readonly isolated: CpuSet;
  readonly memory: readonly MemoryTable[];
}

/** The CPUs that any of them has. */
export function exclusiveCpus(holders: readonly Holder[]): CpuSet {
  return holders.reduce((cpus, holder) => cpus.union(holder.cpus), CpuSet.EMPTY);
}

/** Those that a state folder tells of. */
export function holdingsOfView({ grants, managed, reserved, isolated, memory }: StateView): Holdings {
  const length = shownIdLength(grants.map(({ uid }) => uid));
  const holders = grants.map(
    ({ uid, name, cpus, upcoming, memory: blocks, devices, alive }): Holder => ({
      name: name === uid ? uid.slice(0, length) : name,
      cpus: upcoming === null ? cpus : cpus.union(upcoming),
      memory: blocks,
      devices,
      ...(alive ? {} : { note: 'dead: taken back at the next transaction' }),
      isHighlighted: false,
    }),
  );
  return { holders, managed, reserved, isolated, memory };
}

/** Those of a state with pods that are planned on it: their names by uid. */
export function holdingsOfPlan(
  state: Assignments,
  topology: Topology,
  present: CpuSnapshot,
  planned: ReadonlyMap<string, string>,
): Holdings {
  const { settings, pods } = state;
  const length = shownIdLength(pods.map(({ uid }) => uid));
  const holders = pods.map(
    (pod): Holder => ({
      name: planned.get(pod.uid) ?? (pod.name === pod.uid ? pod.uid.slice(0, length) : pod.name),
      cpus: cpusOf(pod),
      memory: memoryOf(pod),
      devices: devicesOf(pod),
      isHighlighted: planned.has(pod.uid),
    }),
  );
  return {
    holders,
    managed: universe(settings, present),
    reserved: settings.reservedSystemCPUs,
    isolated: isolatedPool(settings, present),
    memory: memoryTables(state, topology),
  };
}
