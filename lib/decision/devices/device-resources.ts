// DeviceResources: the devices that one manager knows, by the name of the resource. What a
// preferred-allocation callback answers is checked here.
import { display, invalidOption, thrownText } from '../../base/check-options.js';
import { Refusal } from '../../base/refusal.js';
import { ENVIRONMENT } from '../../base/registry.js';
import type { Device } from '../../input/devices.js';
import { abandon } from '../hints/hint-provider.js';

/** A question to a {@link PreferredAllocation}, as the device plugin API of Kubernetes asks it. */
export interface PreferredAllocationRequest {
  readonly resource: string;
  /** Ids to choose from, those that must be included among them; in byte order. */
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  /** How many in all. */
  readonly size: number;
}

/**
 * Which devices go well together. Null: no opinion, any will do. Fewer than `size`: among these
 * there is no good choice; NUMA nodes with a good one are then preferred, and where there is none
 * at all, it has no say. Called while the state is locked: it must neither wait nor return a
 * promise.
 */
export type PreferredAllocation = (request: PreferredAllocationRequest) => Iterable<string> | null;

export interface DeviceResource {
  readonly name: string;
  /** In byte order of their ids. */
  readonly devices: readonly Device[];
  readonly preferredAllocation: PreferredAllocation | undefined;
}

/** By name. */
export type DeviceResources = ReadonlyMap<string, DeviceResource>;

/** Whether any of the devices tells its NUMA nodes. */
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
  return new Refusal(
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

// Asked inside its own answer, by a plan of its own, it would never end.
const callbacksAsked = () => new Set<PreferredAllocation>();

// One more than there may be is enough to know: there may be no end of them.
function read(resource: DeviceResource, request: PreferredAllocationRequest, callback: PreferredAllocation) {
  const asking = ENVIRONMENT.of(callbacksAsked);
  if (asking.has(callback)) throw failed(resource, 'it asked for an admission or a plan itself');
  asking.add(callback);
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
    asking.delete(callback);
  }
}

/**
 * What the resource's callback would choose: at most `size` ids, with those that must be included;
 * null: it has no opinion.
 * @throws ERR_PREFERRED_ALLOCATION where it throws, or answers anything else
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
  const known = new Set(available);
  const isRight =
    chosen.length <= size && new Set(chosen).size === chosen.length && chosen.every((id) => known.has(id));
  if (!isRight) throw failed(resource, `it chose ${display(chosen)}`);
  // Without them it is no choice.
  return mustInclude.every((id) => chosen.includes(id)) ? chosen : [];
}
