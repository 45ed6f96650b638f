// Preference: which devices go well together, by numalign's best fit. Pure.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';
import type { CpuDevice, DeviceUnit } from './inventory.js';

export interface PreferenceRequest {
  readonly unit: DeviceUnit;
  readonly available: readonly CpuDevice[];
  /** Must be among the available ones. */
  readonly mustInclude: readonly CpuDevice[];
  /** The total number of devices. */
  readonly count: number;
}

/** The preferred devices, ascending; empty if there are too few. */
export function preferredDevices(topology: Topology, request: PreferenceRequest): CpuDevice[] {
  const { unit, available, mustInclude, count } = request;
  if (available.length < count) return [];
  // A core is represented by its lowest CPU, whatever the number of its threads.
  const machine = unit === 'core' ? topology.withoutSmt() : topology;
  const idOf = ({ cpus }: CpuDevice) => cpus.first!;
  const byCpu = new Map(available.map((device) => [idOf(device), device]));
  const fit = machine.bestFit(CpuSet.from(byCpu.keys()), count, {
    mustInclude: CpuSet.from(mustInclude.map(idOf)),
  });
  return [...fit].map((cpu) => byCpu.get(cpu)!);
}
