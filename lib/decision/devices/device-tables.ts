// The account of devices: what is registered, and what of it is free. Pure.
import type { Assignments } from '../../account/assignments.js';
import { availableDevices } from './device-draft.js';
import type { DeviceResources } from './device-resources.js';

/** A registered device. */
export interface DeviceEntry {
  /** The name of the resource. */
  readonly resource: string;
  readonly id: string;
  /** The NUMA nodes it is near, ascending; null where it reports none. */
  readonly numaNodes: readonly number[] | null;
  readonly healthy: boolean;
  /** Whether it is healthy and no grant holds it. */
  readonly free: boolean;
}

/** All registered devices, in the order of resources and, within one, of ids. */
export function deviceTable(state: Assignments, resources: DeviceResources): DeviceEntry[] {
  return [...resources.values()].flatMap((resource) => {
    const free = new Set(availableDevices({ state, takenDevices: new Set() }, resource));
    return resource.devices.map((device) => ({
      resource: resource.name,
      ...device,
      free: free.has(device),
    }));
  });
}
