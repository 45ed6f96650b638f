// The Device Manager: hints for devices, and which ones a container gets. Follows the kubelet's
// (v1.32); where that picks among equals at random, the lowest id comes first here. Pure, but for
// preferred-allocation callbacks.

import { deviceKey, deviceKeys, heldDevices } from '../account/held-devices.js';
import type { DeviceAssignment } from '../account/pod-assignment.js';
import { oncePerPods } from '../account/pod-summary.js';
import { native } from '../base/native.js';
import { Refusal } from '../base/refusal.js';
import { byteOrder, type Device } from '../input/devices.js';
import { amountFor } from '../input/pod-request.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import type { NodeSet } from '../machine/cpu-set.js';
import { maskOf } from '../machine/hint-masks.js';
import { HintFamily, type TopologyHint } from '../machine/hints.js';
import { askForPreferred, type DeviceResource } from './device-resources.js';
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

// By list, as the pods on record leave it.
const availableBesides = oncePerPods(() => new WeakMap<readonly Device[], readonly Device[]>());

/** The healthy devices that nobody holds. */
export function availableDevices(
  { state, takenDevices }: Draft,
  resource: DeviceResource,
): readonly Device[] {
  const { name, devices } = resource;
  const lists = availableBesides(state.pods);
  let available = lists.get(devices);
  if (!available) {
    const held = heldDevices(state);
    const keys = keysOf(resource);
    available = devices.filter(({ healthy }, i) => healthy && !held.has(keys[i]!));
    lists.set(devices, available);
  }
  if (takenDevices.size === 0) return available;
  return available.filter(({ id }) => !takenDevices.has(deviceKey(name, id)));
}

const NO_IDS: ReadonlySet<string> = new Set();

function reusableIds({ reusableDevices }: Draft, { name }: DeviceResource): ReadonlySet<string> {
  return reusableDevices.get(name) ?? NO_IDS;
}

/**
 * The hints for a container, or for the whole pod, by resource. Devices of which none tells its
 * NUMA nodes have no preference.
 * @throws ERR_PREFERRED_ALLOCATION
 */
export function deviceHints(
  draft: Draft,
  container: ContainerRequest | undefined,
): Record<string, HintFamily> {
  const hints: Record<string, HintFamily> = {};
  for (const [resource, count] of deviceRequests(draft, container)) {
    hints[resource.name] = hintsOf(draft, resource, count);
  }
  return hints;
}

// Of one device on its way to the core: its mask, low and high, and its flags.
const DEVICE_COLUMNS = 3;

// Of lists that never change, on machines that do not either.
const rowsOfLists = new WeakMap<
  readonly Device[],
  { readonly numaNodes: readonly number[]; readonly rows: number[] }
>();

// Without the flags.
function rowsOf({ devices }: DeviceResource, numaNodes: readonly number[]): readonly number[] {
  const known = rowsOfLists.get(devices);
  if (known?.numaNodes === numaNodes) return known.rows;
  const rows = devices.flatMap((device) => [...maskOf(device.numaNodes ?? [], numaNodes), 0]);
  rowsOfLists.set(devices, { numaNodes, rows });
  return rows;
}

function hintsOf(draft: Draft, resource: DeviceResource, count: number): HintFamily {
  const { topology } = draft;
  const { devices } = resource;
  if (!isAligned(resource)) return HintFamily.from(null, topology.numaNodes);
  if (count > devices.length) return HintFamily.from([], topology.numaNodes);
  const available = availableDevices(draft, resource);
  const reusable = reusableIds(draft, resource);
  const rows = rowsOf(resource, topology.numaNodes).slice();
  let next = 0;
  for (let i = 0; i < devices.length; i++) {
    // They are in the same order.
    const isAvailable = devices[i] === available[next];
    if (isAvailable) next++;
    rows[DEVICE_COLUMNS * i + 2] = (isAvailable ? 1 : 0) | (reusable.has(devices[i]!.id) ? 2 : 0);
  }
  const family = new HintFamily(native.deviceHints(topology.nodes.length, count, rows), topology.numaNodes);
  return shapedByChoice(resource, family, available, reusable, count);
}

// Sets of NUMA nodes for which a callback is asked, while others wait.
const MOST_CHOICES = 256;

// Masks in which the callback finds no good choice are not preferred, as long as it finds one in
// others.
function shapedByChoice(
  resource: DeviceResource,
  family: HintFamily,
  available: readonly Device[],
  reusable: ReadonlySet<string>,
  count: number,
): HintFamily {
  if (!resource.preferredAllocation || reusable.size >= count) return family;
  // Preferred ones are the narrowest of all, and come first.
  const preferred = family.first(MOST_CHOICES + 1).filter((hint) => hint.preferred);
  if (preferred.length > MOST_CHOICES) return family;
  const free = new Set(available.map(({ id }) => id));
  const refused: NodeSet[] = [];
  let isAnyGood = false;
  for (const { nodes } of preferred) {
    const near = resource.devices.filter(
      ({ id, numaNodes }) =>
        reusable.has(id) || (free.has(id) && numaNodes?.some((node) => nodes!.has(node))),
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
 * Takes devices for one container: what init containers have left, then those near the hint's NUMA
 * nodes, then any.
 * @throws ERR_INSUFFICIENT_DEVICES, ERR_PREFERRED_ALLOCATION
 */
export function allocateDevices(
  draft: Draft,
  container: ContainerRequest,
  hint: TopologyHint,
): DeviceAllocation {
  const allocation: Record<string, readonly DeviceAssignment[]> = {};
  const takenDevices = new Set(draft.takenDevices);
  for (const [resource, count] of deviceRequests(draft, container)) {
    const { name, devices } = resource;
    const keys = keysOf(resource);
    const chosen = new Set(choose({ ...draft, takenDevices }, resource, count, hint));
    const own: DeviceAssignment[] = [];
    for (let i = 0; i < devices.length && own.length < count; i++) {
      const { id, numaNodes } = devices[i]!;
      if (!chosen.has(id)) continue;
      // Of a PCI device that two resources have, the second must know.
      takenDevices.add(keys[i]!);
      own.push(Object.freeze({ id, nodes: numaNodes }));
    }
    allocation[name] = own;
  }
  return allocation;
}

function choose(
  draft: Draft,
  resource: DeviceResource,
  count: number,
  hint: TopologyHint,
): readonly string[] {
  const reusable = reusableIds(draft, resource);
  const kept = reusable.size > 0 ? [...reusable].sort(byteOrder).slice(0, count) : [];
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

// Devices near the hint's nodes, those that are near no other node first; and all others, those
// that tell no node last.
function byAffinity(resource: DeviceResource, available: readonly Device[], { nodes }: TopologyHint) {
  if (nodes === null || !isAligned(resource)) return { aligned: [], others: available.map(({ id }) => id) };
  const near: string[] = [];
  const partlyNear: { readonly id: string; readonly outside: number }[] = [];
  const elsewhere: string[] = [];
  const nowhere: string[] = [];
  for (const { id, numaNodes } of available) {
    let inside = 0;
    for (const node of numaNodes ?? []) if (nodes.has(node)) inside++;
    if (numaNodes === null) nowhere.push(id);
    else if (inside === 0) elsewhere.push(id);
    else if (inside === numaNodes.length) near.push(id);
    else partlyNear.push({ id, outside: numaNodes.length - inside });
  }
  partlyNear.sort((a, b) => a.outside - b.outside);
  for (const { id } of partlyNear) near.push(id);
  for (const id of nowhere) elsewhere.push(id);
  return { aligned: near, others: elsewhere };
}

function insufficient({ name, devices }: DeviceResource, count: number, free: number): Refusal {
  const sick = devices.filter(({ healthy }) => !healthy).length;
  const why = sick > 0 ? ` (${sick} of ${devices.length} are unhealthy)` : '';
  const message = `devices of ${name} asked for: ${count}, free: ${free}${why}`;
  return new Refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_DEVICES', message, {
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
  // Others than init containers leave nothing behind.
  const changed = kind === 'init' ? names : names.filter((name) => reusableDevices.has(name));
  for (const name of changed) {
    const devices = allocation[name]!;
    const own = new Set(reusableDevices.get(name));
    for (const { id } of devices) kind === 'init' ? own.add(id) : own.delete(id);
    reusableDevices.set(name, own);
  }
  return { ...draft, takenDevices, reusableDevices };
}
