// Which devices pods have. Pure.
import { PCI_ADDRESS } from '../machine/pci-address.js';
import type { Assignments } from './assignments.js';
import { oncePerPods } from './cpus-of-pods.js';
import type { DeviceAssignment } from './pod-assignment.js';

/**
 * What tells devices apart: the address of a PCI device whatever the resource is called, else the
 * id and its resource.
 */
export function deviceKey(resource: string, id: string): string {
  return PCI_ADDRESS.test(id) ? id : `${resource} ${id}`;
}

/** The {@link deviceKey}s of devices by resource. */
export function deviceKeys(devices: Readonly<Record<string, readonly DeviceAssignment[]>>): string[] {
  const keys: string[] = [];
  for (const resource of Object.keys(devices))
    for (const { id } of devices[resource]!) keys.push(deviceKey(resource, id));
  return keys;
}

/** The {@link deviceKey}s of all devices that somebody holds. */
export function heldDevices({ pods }: Pick<Assignments, 'pods'>): ReadonlySet<string> {
  return devicesOfPods(pods);
}

const devicesOfPods = oncePerPods((pods) => {
  const held = new Set<string>();
  for (const { containers } of pods) {
    for (const { devices } of containers) for (const key of deviceKeys(devices)) held.add(key);
  }
  return held;
});
