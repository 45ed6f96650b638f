// The Device Manager: hints for devices, and which ones a container gets. Follows the kubelet's (v1.32); where that picks among equals at random, the
// lowest id comes first here. Pure, but for preferred-allocation callbacks.
import type { NodeSet } from '../cpu-set.js';
import { askForPreferred, type DeviceResource } from '../device-resources.js';
import { byteOrder, type Device } from '../devices.js';
import { NumalignError } from '../errors.js';
import { HintFamily, maskOf, type TopologyHint } from '../hints.js';
import { native } from '../native.js';
import { amountFor, type ContainerRequest } from '../pod-request.js';
import { type DeviceAssignment, deviceKey, deviceKeys, heldDevices } from '../state/assignments.js';
import type { Draft } from './draft.js';

/** What a container, or the whole pod, asks for of the resources that this manager knows. */
export function deviceRequests(
  { pod, resources }: Pick<Draft, 'pod' | 'resources'>,
  container: ContainerRequest | undefined,
): Map<DeviceResource, number> {
  const requests = new Map<DeviceResource, number>();
  for (const resource of resources.values()) {
    const amount = amountFor(pod, container, resource.name);
    if (amount > 0) requests.set(resource, amount);
  }
  return requests;
}

const isAligned = ({ devices }: DeviceResource) => devices.some(({ numaNodes }) => numaNodes !== null);

// Of lists that never change.
const keysOfLists = new WeakMap<readonly Device[], readonly string[]>();

function keysOf({ name, devices }: DeviceResource): readonly string[] {
  let keys = keysOfLists.get(devices);
  if (!keys) {
    keys = devices.map(({ id }) => deviceKey(name, id));
    keysOfLists.set(devices, keys);
  }
  return keys;
}

/** The healthy devices that nobody holds. */
export function availableDevices({ state, takenDevices }: Draft, resource: DeviceResource): Device[] {
  const held = heldDevices(state);
  const keys = keysOf(resource);
  return resource.devices.filter(({ healthy }, i) => healthy && !held.has(keys[i]!) && !takenDevices.has(keys[i]!));
}

function reusableIds({ reusableDevices }: Draft, { name }: DeviceResource): ReadonlySet<string> {
  return reusableDevices.get(name) ?? new Set();
}

/**
 * The hints for a container, or for the whole pod, by resource. Devices of which none tells its NUMA nodes have no preference.
 * @throws ERR_PREFERRED_ALLOCATION
 */
export function deviceHints(draft: Draft, container: ContainerRequest | undefined): Record<string, HintFamily> {
  const hints: Record<string, HintFamily> = {};
  for (const [resource, count] of deviceRequests(draft, container)) {
    hints[resource.name] = hintsOf(draft, resource, count);
  }
  return hints;
}

function hintsOf(draft: Draft, resource: DeviceResource, count: number): HintFamily {
  const { topology } = draft;
  if (!isAligned(resource)) return HintFamily.from(null, topology.numaNodes);
  if (count > resource.devices.length) return HintFamily.from([], topology.numaNodes);
  const available = new Set<string>();
  for (const { id } of availableDevices(draft, resource)) available.add(id);
  const reusable = reusableIds(draft, resource);
  const rows = new Uint32Array(DEVICE_COLUMNS * resource.devices.length);
  let at = 0;
  for (const { id, numaNodes } of resource.devices) {
    const [low, high] = maskOf(numaNodes ?? [], topology.numaNodes);
    rows[at] = low;
    rows[at + 1] = high;
    rows[at + 2] = (available.has(id) ? 1 : 0) | (reusable.has(id) ? 2 : 0);
    at += DEVICE_COLUMNS;
  }
  const family = new HintFamily(native.deviceHints(topology.nodes.length, count, rows), topology.numaNodes);
  return shapedByChoice(resource, family, available, reusable, count);
}

// Of one device on its way to the core: its mask, low and high, and its flags.
const DEVICE_COLUMNS = 3;

// Sets of NUMA nodes for which a callback is asked, while others wait.
const MOST_CHOICES = 256;

// Masks in which the callback finds no good choice are not preferred, as long as it finds one in others.
function shapedByChoice(
  resource: DeviceResource,
  family: HintFamily,
  available: ReadonlySet<string>,
  reusable: ReadonlySet<string>,
  count: number,
): HintFamily {
  if (!resource.preferredAllocation || reusable.size >= count) return family;
  // Preferred ones are the narrowest of all, and come first.
  const preferred = family.first(MOST_CHOICES + 1).filter((hint) => hint.preferred);
  if (preferred.length > MOST_CHOICES) return family;
  const refused: NodeSet[] = [];
  let isAnyGood = false;
  for (const { nodes } of preferred) {
    const near = resource.devices.filter(
      ({ id, numaNodes }) => reusable.has(id) || (available.has(id) && numaNodes?.some((node) => nodes!.has(node))),
    );
    const ids = near.map(({ id }) => id);
    const choice = askForPreferred(
      resource,
      ids,
      ids.filter((id) => reusable.has(id)),
      count,
    );
    if (choice === null || choice.length === count) isAnyGood = true;
    else refused.push(nodes!);
  }
  return isAnyGood && refused.length > 0 ? family.withoutPreferred(refused) : family;
}

/** Ids by resource, in byte order. */
export type DeviceAllocation = Readonly<Record<string, readonly DeviceAssignment[]>>;

/**
 * Takes devices for one container: what init containers have left, then those near the hint's NUMA nodes, then any.
 * @throws ERR_INSUFFICIENT_DEVICES, ERR_PREFERRED_ALLOCATION
 */
export function allocateDevices(draft: Draft, container: ContainerRequest, hint: TopologyHint): DeviceAllocation {
  const allocation: Record<string, readonly DeviceAssignment[]> = {};
  const takenDevices = new Set(draft.takenDevices);
  for (const [resource, count] of deviceRequests(draft, container)) {
    const chosen = new Set(choose({ ...draft, takenDevices }, resource, count, hint));
    // Of a PCI device that two resources have, the second must know.
    for (const id of chosen) takenDevices.add(deviceKey(resource.name, id));
    allocation[resource.name] = resource.devices
      .filter(({ id }) => chosen.has(id))
      .map(({ id, numaNodes }) => Object.freeze({ id, nodes: numaNodes }));
  }
  return allocation;
}

function choose(draft: Draft, resource: DeviceResource, count: number, hint: TopologyHint): readonly string[] {
  const kept = [...reusableIds(draft, resource)].sort(byteOrder).slice(0, count);
  const needed = count - kept.length;
  if (needed === 0) return kept;
  const available = availableDevices(draft, resource);
  if (available.length < needed) throw insufficient(resource, count, available.length + kept.length);

  const { aligned, others } = byAffinity(resource, available, hint);
  const isEnough = aligned.length > needed;
  // Where the aligned ones do not suffice, all of them are in, and the choice is about the rest.
  const must = isEnough ? kept : [...kept, ...aligned];
  if (must.length === count) return must;
  const from = isEnough ? aligned : others;
  if (!resource.preferredAllocation) return [...must, ...from.slice(0, count - must.length)];
  const choice = askForPreferred(resource, [...must, ...from].sort(byteOrder), must, count) ?? [];
  const preferred = choice.filter((id) => from.includes(id));
  const rest = from.filter((id) => !preferred.includes(id));
  return [...must, ...preferred, ...rest].slice(0, count);
}

// Devices near the hint's nodes, those that are near no other node first; and all others, those that tell no node last.
function byAffinity(resource: DeviceResource, available: readonly Device[], { nodes }: TopologyHint) {
  if (nodes === null || !isAligned(resource)) return { aligned: [], others: available.map(({ id }) => id) };
  const outside = ({ numaNodes }: Device) => numaNodes!.filter((node) => !nodes.has(node)).length;
  const isNear = ({ numaNodes }: Device) => numaNodes?.some((node) => nodes.has(node)) ?? false;
  const aligned = available.filter(isNear).sort((a, b) => outside(a) - outside(b));
  const elsewhere = available.filter((device) => !isNear(device));
  const others = [
    ...elsewhere.filter(({ numaNodes }) => numaNodes !== null),
    ...elsewhere.filter(({ numaNodes }) => numaNodes === null),
  ];
  return { aligned: aligned.map(({ id }) => id), others: others.map(({ id }) => id) };
}

function insufficient({ name, devices }: DeviceResource, count: number, free: number): NumalignError {
  const sick = devices.filter(({ healthy }) => !healthy).length;
  const why = sick > 0 ? ` (${sick} of ${devices.length} are unhealthy)` : '';
  return new NumalignError('ERR_INSUFFICIENT_DEVICES', `devices of ${name} asked for: ${count}, free: ${free}${why}`, {
    reason: 'UnexpectedAdmissionError',
    value: count,
    valid: free > 0 ? `1 to ${free}` : 'none at present',
    resource: name,
  });
}

/** The draft once a container has been given its devices. */
export function withDevices(draft: Draft, { kind }: ContainerRequest, allocation: DeviceAllocation): Draft {
  const names = Object.keys(allocation);
  if (names.length === 0) return draft;
  const takenDevices = new Set(draft.takenDevices);
  for (const key of deviceKeys(allocation)) takenDevices.add(key);
  const reusableDevices = new Map(draft.reusableDevices);
  for (const name of names) {
    const devices = allocation[name]!;
    const own = new Set(reusableDevices.get(name));
    for (const { id } of devices) kind === 'init' ? own.add(id) : own.delete(id);
    reusableDevices.set(name, own);
  }
  return { ...draft, takenDevices, reusableDevices };
}
