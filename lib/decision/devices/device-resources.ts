// DeviceResources: the devices that a manager knows, by resource name. Checks the answers of
// preferred-allocation callbacks.
import { display, invalidOption, thrownText } from '../../base/check-options.js';
import { oncePerLast } from '../../base/collections/once-per.js';
import { ENVIRONMENT } from '../../base/collections/registry.js';
import { type Refusal, refusal } from '../../base/refusal.js';
import type { Device } from '../../input/devices.js';
import { homesOf } from '../../machine/cpu-nodes.js';
import type { Topology } from '../../machine/topology.js';
import { abandon } from '../hints/hint-provider.js';

/** A question to a {@link PreferredAllocation}, as in the device plugin API of Kubernetes. */
export interface PreferredAllocationRequest {
  /** The name of the resource, such as `example.com/nic`. */
  readonly resource: string;
  /** Ids to choose from, with those of `mustInclude`; in byte order. */
  readonly available: readonly string[];
  /** Ids that the answer must include; all are in `available`. */
  readonly mustInclude: readonly string[];
  /** The number of devices to choose. */
  readonly size: number;
}

/**
 * Chooses devices that go well together. Null means no opinion: any will do. Fewer than `size` ids
 * mean that no choice among these is good. NUMA nodes with a good choice are then preferred;
 * without any, the callback has no effect. Called while the state is locked, so it must neither
 * wait nor return a promise.
 */
export type PreferredAllocation = (request: PreferredAllocationRequest) => Iterable<string> | null;

export interface DeviceResource {
  readonly name: string;
  /** In byte order of their ids. */
  readonly devices: readonly Device[];
  readonly preferredAllocation: PreferredAllocation | undefined;
}

/** The same devices, with the nearest nodes with CPUs as their nodes. */
export const nearCpuNodes = oncePerLast((resource: DeviceResource, topology: Topology): DeviceResource => {
  const isThere = (id: number) => topology.numaNodes.includes(id);
  const devices = resource.devices.map((device) => {
    const { numaNodes } = device;
    return numaNodes?.every(isThere) ? { ...device, numaNodes: homesOf(topology, numaNodes) } : device;
  });
  return { ...resource, devices };
});

/** By name. */
export type DeviceResources = ReadonlyMap<string, DeviceResource>;

/** True if any of the devices reports its NUMA nodes. */
export function isAligned({ devices }: DeviceResource): boolean {
  for (let i = 0; i < devices.length; i++) if (devices[i]!.numaNodes !== null) return true;
  return false;
}

/** @throws ERR_INVALID_OPTION */
export function checkPreferredAllocation(value: unknown): PreferredAllocation | undefined {
  if (value === undefined || typeof value === 'function') return value as PreferredAllocation | undefined;
  return invalidOption('preferredAllocation', value, 'a function');
}

function failed({ name }: DeviceResource, why: string, cause?: unknown): Refusal {
  return refusal(
    'UnexpectedAdmissionError',
    'ERR_PREFERRED_ALLOCATION',
    `the preferred allocation for ${name} failed: ${why}`,
    {
      value: name,
      valid: 'some of the available ids, each once, with those that must be included; or null',
      cause,
    },
  );
}

// A callback that asks for a plan itself would be called without end.
const runningCallbacks = () => new Set<PreferredAllocation>();

// Reads one id more than allowed: the iterable may be endless.
function read(resource: DeviceResource, request: PreferredAllocationRequest, callback: PreferredAllocation) {
  const running = ENVIRONMENT.of(runningCallbacks);
  if (running.has(callback)) throw failed(resource, 'it requested an admission or a plan itself');
  running.add(callback);
  let answer: unknown;
  try {
    answer = callback(request);
    if (answer === null) return null;
    const chosen: unknown[] = [];
    for (const id of answer as Iterable<unknown>) if (chosen.push(id) > request.size) break;
    return chosen as string[];
  } catch (error) {
    abandon(answer);
    throw failed(resource, thrownText(error), error);
  } finally {
    running.delete(callback);
  }
}

/**
 * Asks the resource's callback: at most `size` ids, with those that must be included; null: no
 * opinion.
 * @throws ERR_PREFERRED_ALLOCATION if it throws or returns something else
 */
export function askForPreferred(
  resource: DeviceResource,
  available: readonly string[],
  mustInclude: readonly string[],
  size: number,
): readonly string[] | null {
  if (!resource.preferredAllocation) return null;
  const request = Object.freeze({
    resource: resource.name,
    available: Object.freeze([...available]),
    mustInclude: Object.freeze([...mustInclude]),
    size,
  });
  const chosen = read(resource, request, resource.preferredAllocation);
  if (chosen === null) return null;
  const allowed = new Set(available);
  const isRight =
    chosen.length <= size && new Set(chosen).size === chosen.length && chosen.every((id) => allowed.has(id));
  if (!isRight) throw failed(resource, `it chose ${display(chosen)}`);
  // A choice without the required devices counts as none.
  return mustInclude.every((id) => chosen.includes(id)) ? chosen : [];
}
