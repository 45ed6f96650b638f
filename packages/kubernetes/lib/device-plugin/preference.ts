// Preference: which devices go well together, by numalign's best fit. Pure.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';
import type { CpuDevice, DeviceUnit } from './inventory.js';

export interface PreferenceRequest {
  readonly unit: DeviceUnit;
  readonly available: readonly CpuDevice[];
  /** Among those available. */
  readonly mustInclude: readonly CpuDevice[];
  /** How many in all. */
  readonly count: number;
}

/** The devices to prefer, ascending; none where there are too few. */
export function preferredDevices(topology: Topology, request: PreferenceRequest): CpuDevice[] {
  const { unit, available, mustInclude, count } = request;
  if (available.length < count) return [];
  // Of a core its lowest CPU stands for all of it, whatever the number of its threads.
  const machine = unit === 'core' ? topology.withoutSmt() : topology;
  const idOf = ({ cpus }: CpuDevice) => cpus.first!;
  const byCpu = new Map(available.map((device) => [idOf(device), device]));
  const chosen = machine.bestFit(CpuSet.from(byCpu.keys()), count, {
    mustInclude: CpuSet.from(mustInclude.map(idOf)),
  });
  return [...chosen].map((cpu) => byCpu.get(cpu)!);
}
