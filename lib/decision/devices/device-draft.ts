// The devices available to a pod at one step of its decision. Pure.

import type { Assignments } from '../../account/assignments.js';
import { deviceKey, deviceKeys, heldDevices } from '../../account/held-devices.js';
import type { DeviceAssignment } from '../../account/pod-assignment.js';
import { withLast } from '../../base/collections/lists.js';
import { oncePer, oncePerLast } from '../../base/collections/once-per.js';
import type { Device } from '../../input/devices.js';
import type { Placement } from '../../input/placement.js';
import { amountFor } from '../../input/pods/pod-request.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { Topology } from '../../machine/topology.js';
import type { DeviceResource, DeviceResources } from './device-resources.js';

/** The devices that placed containers leave to later ones. */
export interface DevicesLeft {
  /** Keys of the devices that the containers have taken so far. */
  readonly takenDevices: ReadonlySet<string>;
  /** What init containers left for later ones: ids by resource. */
  readonly reusableDevices: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The input to choosing devices. */
export interface DeviceDraft extends DevicesLeft {
  readonly topology: Topology;
  /** The state without the pod. */
  readonly state: Assignments;
  readonly pod: PodRequest;
  readonly placement: Placement;
  /** The devices that this manager knows. */
  readonly resources: DeviceResources;
}

const keysOf = oncePer(({ name, devices }: DeviceResource) => devices.map(({ id }) => deviceKey(name, id)));

const notHeld = oncePerLast((resource: DeviceResource, held: ReadonlySet<string>): readonly Device[] => {
  const keys = keysOf(resource);
  return resource.devices.filter(({ healthy }, i) => healthy && !held.has(keys[i]!));
});

/** The healthy devices that no grant holds. */
export function availableDevices(
  { state, takenDevices }: Pick<DeviceDraft, 'state' | 'takenDevices'>,
  resource: DeviceResource,
): readonly Device[] {
  const available = notHeld(resource, heldDevices(state));
  if (takenDevices.size === 0) return available;
  return available.filter(({ id }) => !takenDevices.has(deviceKey(resource.name, id)));
}

const NO_IDS: ReadonlySet<string> = new Set();

/** How many of the devices are near a NUMA node. */
export const countNear = (devices: readonly Device[], node: number): number =>
  devices.filter(({ numaNodes }) => numaNodes?.includes(node)).length;

/** The ids of a resource's devices that init containers left behind. */
export function reusableIds({ reusableDevices }: DevicesLeft, { name }: DeviceResource): ReadonlySet<string> {
  return reusableDevices.get(name) ?? NO_IDS;
}

/** Devices by resource, in byte order of their ids. */
export type DeviceAllocation = Readonly<Record<string, readonly DeviceAssignment[]>>;

/** The devices left after a container got its allocation. */
export function devicesLeft(
  draft: DevicesLeft,
  { kind }: ContainerRequest,
  allocation: DeviceAllocation,
): DevicesLeft {
  const names = Object.keys(allocation);
  if (names.length === 0) return draft;
  const takenDevices = new Set(draft.takenDevices);
  for (const key of deviceKeys(allocation)) takenDevices.add(key);
  // Only init containers leave devices behind.
  const changed = kind === 'init' ? names : names.filter((name) => draft.reusableDevices.has(name));
  if (changed.length === 0) return { takenDevices, reusableDevices: draft.reusableDevices };
  const reusableDevices = new Map(draft.reusableDevices);
  for (const name of changed) {
    const devices = allocation[name]!;
    const reusable = new Set(reusableDevices.get(name));
    for (const { id } of devices) kind === 'init' ? reusable.add(id) : reusable.delete(id);
    reusableDevices.set(name, reusable);
  }
  return { takenDevices, reusableDevices };
}

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

export interface DeviceRequest {
  readonly resource: DeviceResource;
  readonly count: number;
}

const NO_REQUESTS: readonly DeviceRequest[] = [];

/** The requests that the Device Manager serves, without those that a DRA driver serves. */
export function ownDevices(
  { pod }: Pick<DeviceDraft, 'pod'>,
  { name }: ContainerRequest,
  requests: readonly DeviceRequest[],
): readonly DeviceRequest[] {
  const others = pod.draExtendedResources;
  if (!others || !Object.hasOwn(others, name)) return requests;
  return requests.filter(({ resource }) => !others[name]!.includes(resource.name));
}

/** The requests of a container, or of the whole pod, for the resources that this manager knows. */
export function deviceRequests(
  { pod, resources }: Pick<DeviceDraft, 'pod' | 'resources'>,
  container: ContainerRequest | undefined,
): readonly DeviceRequest[] {
  if (resources.size === 0) return NO_REQUESTS;
  let requests = NO_REQUESTS;
  for (const resource of resources.values()) {
    const count = amountFor(pod, container, resource.name);
    if (count > 0) requests = withLast(requests, { resource, count });
  }
  return requests;
}
