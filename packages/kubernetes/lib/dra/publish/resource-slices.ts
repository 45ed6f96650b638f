// ResourceSlices: a node's devices as objects of resource.k8s.io. Pure.
import { createHash } from 'node:crypto';
import { binaryBytes } from 'numalign/tools';
import type { KubernetesObject } from '../../api-server/resource.js';
import type { AttributeValue, Capacity, Device } from '../devices.js';

/** The versions with slices, the newest first. */
export const VERSIONS = ['v1', 'v1beta2', 'v1beta1'] as const;
export type ResourceVersion = (typeof VERSIONS)[number];

export const GROUP = 'resource.k8s.io';
export const PLURAL = 'resourceslices';

/** Keeps claims away that do not tolerate it; pods that run stay. */
export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: 'NoSchedule';
}

export interface TaintedDevice extends Device {
  readonly taints: readonly Taint[];
}

export interface SlicesOptions {
  readonly driver: string;
  readonly nodeName: string;
  readonly version: ResourceVersion;
}

// The limits of the API for a slice.
const MOST_DEVICES = 128;
const MOST_TAINTED = 64;
const LONGEST_NAME = 253;

/** A slice as it should be, but for its pool's generation. */
export interface SliceSpec {
  readonly driver: string;
  readonly nodeName: string;
  readonly pool: { readonly name: string; readonly resourceSliceCount: number };
  readonly devices: readonly object[];
}

/** By the names of the objects. Without devices there is one, to say so: the driver is there. */
export function slicesOf(
  devices: readonly TaintedDevice[],
  { driver, nodeName, version }: SlicesOptions,
): Map<string, SliceSpec> {
  const size = devices.some(({ taints }) => taints.length > 0) ? MOST_TAINTED : MOST_DEVICES;
  const count = Math.max(1, Math.ceil(devices.length / size));
  const pool = { name: nodeName, resourceSliceCount: count };
  return new Map(
    Array.from({ length: count }, (_, i) => {
      const part = devices.slice(i * size, (i + 1) * size);
      const objects = part.map((device) => deviceObject(device, version));
      return [sliceName(i, driver, nodeName), { driver, nodeName, pool, devices: objects }];
    }),
  );
}

/** Schedulers try slices in the order of their names. */
export function sliceName(index: number, driver: string, nodeName: string): string {
  const name = `${String(index).padStart(5, '0')}-${driver}-${nodeName}`;
  if (name.length <= LONGEST_NAME) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 16);
  return `${name.slice(0, LONGEST_NAME - hash.length - 1).replace(/[^a-z0-9]+$/, '')}-${hash}`;
}

/** The slice as an object of a version, of this generation. */
export const sliceObject = (
  name: string,
  spec: SliceSpec,
  generation: number,
  version: ResourceVersion,
  metadata: object = {},
): KubernetesObject => ({
  apiVersion: `${GROUP}/${version}`,
  kind: 'ResourceSlice',
  metadata: { name, ...metadata },
  spec: { ...spec, pool: { ...spec.pool, generation } },
});

/** v1beta1 has all but the name in `basic`. */
function deviceObject(device: TaintedDevice, version: ResourceVersion): object {
  const { name, attributes, capacity, isShared, taints } = device;
  const basic = {
    attributes: Object.fromEntries([...attributes].map(([key, value]) => [key, attributeObject(value)])),
    capacity: Object.fromEntries(
      [...capacity].map(([key, amount]) => [
        key,
        capacityObject(amount, key === 'cpu' ? String : binaryBytes),
      ]),
    ),
    ...(isShared && { allowMultipleAllocations: true }),
    ...(taints.length > 0 && { taints }),
  };
  return version === 'v1beta1' ? { name, basic } : { name, ...basic };
}

function attributeObject(value: AttributeValue): object {
  if (typeof value === 'number') return { int: value };
  if (typeof value === 'boolean') return { bool: value };
  return typeof value === 'string' ? { string: value } : { strings: value };
}

function capacityObject(
  { value, default: byDefault, least, step }: Capacity,
  quantity: (amount: number) => string,
): object {
  if (byDefault === undefined) return { value: quantity(value) };
  const validRange = least !== undefined && {
    validRange: { min: quantity(least), ...(step !== undefined && { step: quantity(step) }) },
  };
  return { value: quantity(value), requestPolicy: { default: quantity(byDefault), ...validRange } };
}
