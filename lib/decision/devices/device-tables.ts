// The account of devices: which are registered, and which are free. Pure.
import type { Assignments } from '../../account/assignments.js';
import { availableDevices } from './device-draft.js';
import type { DeviceResources } from './device-resources.js';

/** A registered device. */
export interface DeviceEntry {
  /** The name of the resource. */
  readonly resource: string;
  /** Unique in its resource, such as a PCI address. */
  readonly id: string;
  /** The NUMA nodes near the device, ascending; null if it reports none. */
  readonly numaNodes: readonly number[] | null;
  /** Whether it may be granted, as registered. */
  readonly healthy: boolean;
  /** True if it is healthy and no grant holds it. */
  readonly free: boolean;
}

/** All registered devices, ordered by resource, then by id. */
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
