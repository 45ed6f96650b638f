// Devices.
import type { Topology } from './topology.js';
export interface DeviceSpec {
  id: string;
  healthy?: boolean;
  numaNodes?: Iterable<number> | null;
}
export interface DevicePattern {
  class?: string;
  vendor?: string;
}
export type DeviceSelection = DevicePattern | readonly DeviceSpec[];
export interface Device {
  readonly id: string;
  readonly healthy: boolean;
  readonly numaNodes: readonly number[] | null;
}
export function parseDevices(selection: DeviceSelection, _topology: Topology, _resource: string): readonly Device[] {
  return (selection as readonly DeviceSpec[])
    .map(({ id, healthy = true, numaNodes = null }) => ({
      id,
      healthy,
      numaNodes: numaNodes && [...numaNodes].length ? [...numaNodes] : null,
    }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)));
}
