// The devices of pods. Pure.
import { oncePer, oncePerLast } from '../base/collections/once-per.js';
import { PCI_ADDRESS } from '../machine/machine-description.js';
import type { Assignments } from './assignments.js';
import type { KubeletPod, KubeletRecord } from './kubelet-record.js';
import type { DeviceAssignment, PodAssignment } from './pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';

/**
 * The key of a device: its PCI address, whatever the resource is called, or else the resource and
 * the id.
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

const NONE: ReadonlySet<string> = new Set();

/**
 * The {@link deviceKey}s of a pod's devices, without duplicates: later containers may have those of
 * init containers.
 */
export function deviceKeysOf({ containers }: Pick<PodAssignment, 'containers'>): ReadonlySet<string> {
  let keys: Set<string> | undefined;
  for (const { devices } of containers) {
    for (const key of deviceKeys(devices)) {
      keys ??= new Set();
      keys.add(key);
    }
  }
  // Most pods have none.
  return keys ?? NONE;
}

interface HeldDevices {
  readonly keys: ReadonlySet<string>;
  /**
   * True if no device is held twice. Only then does a leaving pod take all of its devices with it.
   */
  readonly isDisjoint: boolean;
}

function add({ keys, isDisjoint }: HeldDevices, pods: readonly PodAssignment[]): HeldDevices {
  let [all, isStillDisjoint]: [Set<string> | undefined, boolean] = [undefined, isDisjoint];
  for (const pod of pods) {
    for (const key of deviceKeysOf(pod)) {
      all ??= new Set(keys);
      if (all.has(key)) isStillDisjoint = false;
      all.add(key);
    }
  }
  return all ? { keys: all, isDisjoint: isStillDisjoint } : { keys, isDisjoint };
}

function less({ keys, isDisjoint }: HeldDevices, pods: readonly PodAssignment[]): HeldDevices {
  const removed = pods.flatMap((pod) => [...deviceKeysOf(pod)]);
  if (removed.length === 0) return { keys, isDisjoint };
  const left = new Set(keys);
  for (const key of removed) left.delete(key);
  return { keys: left, isDisjoint };
}

const NOTHING: HeldDevices = { keys: new Set(), isDisjoint: true };

/** The devices of all pods of a state, computed once per list. */
export const devicesOfPods = oncePerPods(
  (pods) => add(NOTHING, pods),
  (earlier, changes) =>
    earlier.isDisjoint ? add(less(earlier, podsBefore(changes)), podsAfter(changes)) : undefined,
);

/** The {@link deviceKey}s of a kubelet pod's devices. */
export const kubeletDevicesOf = ({ containers }: Pick<KubeletPod, 'containers'>): readonly string[] =>
  containers.flatMap(({ devices }) =>
    Object.entries(devices).flatMap(([resource, ids]) => ids.map((id) => deviceKey(resource, id))),
  );

const devicesOfRecord = oncePer(
  ({ pods }: KubeletRecord): ReadonlySet<string> => new Set(pods.flatMap(kubeletDevicesOf)),
);

/** The {@link deviceKey}s of all devices that the kubelet has given out. */
export const kubeletDevices = (record: KubeletRecord | null): ReadonlySet<string> =>
  record === null ? NONE : devicesOfRecord(record);

const both = oncePerLast(
  (keys: ReadonlySet<string>, others: ReadonlySet<string>): ReadonlySet<string> =>
    new Set([...keys, ...others]),
);

/** The {@link deviceKey}s of all devices held by grants and the kubelet's pods. */
export function heldDevices({ pods, kubelet }: Pick<Assignments, 'pods' | 'kubelet'>): ReadonlySet<string> {
  const { keys } = devicesOfPods(pods);
  const kubeletKeys = kubeletDevices(kubelet);
  return kubeletKeys.size === 0 ? keys : both(keys, kubeletKeys);
}
