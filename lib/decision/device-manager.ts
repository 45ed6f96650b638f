// The Device Manager: hints for devices, and which ones a container gets. Follows the kubelet's
// (v1.32); where that picks among equals at random, the lowest id comes first here. Pure, but for
// preferred-allocation callbacks.

import { deviceKey, deviceKeys, heldDevices } from '../account/held-devices.js';
import type { DeviceAssignment } from '../account/pod-assignment.js';
import { withLast } from '../base/collections/lists.js';
import { native } from '../base/native.js';
import { Refusal } from '../base/refusal.js';
import { byteOrder, type Device } from '../input/devices.js';
import { amountFor } from '../input/pod-request.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import type { NodeSet } from '../machine/cpu-set.js';
import { maskOf } from '../machine/hint-masks.js';
import { HintFamily, type TopologyHint } from '../machine/hints.js';
import { askForPreferred, type DeviceResource } from './device-resources.js';
import type { DevicesLeft, Draft } from './draft.js';
import type { Hints } from './hints/merge-hints.js';

export interface DeviceRequest {
  readonly resource: DeviceResource;
  readonly count: number;
}

const NO_REQUESTS: readonly DeviceRequest[] = [];

/** What a container, or the whole pod, asks for of the resources that this manager knows. */
export function deviceRequests(
  { pod, resources }: Pick<Draft, 'pod' | 'resources'>,
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

function isAligned({ devices }: DeviceResource): boolean {
  for (let i = 0; i < devices.length; i++) if (devices[i]!.numaNodes !== null) return true;
  return false;
}

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

// Of lists that never change: what was left of them last, and by what.
const lastAvailable = new WeakMap<
  readonly Device[],
  { readonly held: ReadonlySet<string>; readonly available: readonly Device[] }
>();

/** The healthy devices that nobody holds. */
export function availableDevices(
  { state, takenDevices }: Pick<Draft, 'state' | 'takenDevices'>,
  resource: DeviceResource,
): readonly Device[] {
  const { name, devices } = resource;
  const held = heldDevices(state);
  let last = lastAvailable.get(devices);
  if (last?.held !== held) {
    const keys = keysOf(resource);
    last = { held, available: devices.filter(({ healthy }, i) => healthy && !held.has(keys[i]!)) };
    lastAvailable.set(devices, last);
  }
  const { available } = last;
  if (takenDevices.size === 0) return available;
  return available.filter(({ id }) => !takenDevices.has(deviceKey(name, id)));
}

const NO_IDS: ReadonlySet<string> = new Set();
const NO_LIST: readonly string[] = [];

function reusableIds({ reusableDevices }: Draft, { name }: DeviceResource): ReadonlySet<string> {
  return reusableDevices.get(name) ?? NO_IDS;
}

// Of one device on its way to the core: its mask, low and high, and its flags.
const DEVICE_COLUMNS = 3;

interface Rows {
  readonly numaNodes: readonly number[];
  readonly rows: readonly number[];
}

// Of lists that never change, on machines that do not either: without the flags of the devices, and of those
// that are available with them.
const rowsOfLists = new WeakMap<readonly Device[], Rows>();
const rowsOfAvailable = new WeakMap<readonly Device[], Rows>();

function plainRows({ devices }: DeviceResource, numaNodes: readonly number[]): readonly number[] {
  const known = rowsOfLists.get(devices);
  if (known?.numaNodes === numaNodes) return known.rows;
  const rows = devices.flatMap((device) => [...maskOf(device.numaNodes ?? [], numaNodes), 0]);
  rowsOfLists.set(devices, { numaNodes, rows });
  return rows;
}

function rowsOf(
  resource: DeviceResource,
  numaNodes: readonly number[],
  available: readonly Device[],
  reusable: ReadonlySet<string>,
): readonly number[] {
  const known = reusable.size === 0 ? rowsOfAvailable.get(available) : undefined;
  if (known?.numaNodes === numaNodes) return known.rows;
  const { devices } = resource;
  const rows = plainRows(resource, numaNodes).slice();
  let next = 0;
  for (let i = 0; i < devices.length; i++) {
    // They are in the same order.
    const isAvailable = devices[i] === available[next];
    if (isAvailable) next++;
    rows[DEVICE_COLUMNS * i + 2] = (isAvailable ? 1 : 0) | (reusable.has(devices[i]!.id) ? 2 : 0);
  }
  if (reusable.size === 0) rowsOfAvailable.set(available, { numaNodes, rows });
  return rows;
}

/**
 * The hints for so many devices of a resource. Devices of which none tells its NUMA nodes have no
 * preference.
 * @throws ERR_PREFERRED_ALLOCATION
 */
export function deviceHints(draft: Draft, { resource, count }: DeviceRequest): Hints {
  const { topology } = draft;
  const { devices } = resource;
  if (!isAligned(resource)) return HintFamily.from(null, topology.numaNodes);
  if (count > devices.length) return HintFamily.from([], topology.numaNodes);
  const available = availableDevices(draft, resource);
  const reusable = reusableIds(draft, resource);
  const rows = rowsOf(resource, topology.numaNodes, available, reusable);
  const call = { nodes: topology.nodes.length, request: count, devices: rows };
  if (!resource.preferredAllocation) return { kind: 'devices', call };
  const family = new HintFamily(native.deviceHints(call), topology.numaNodes);
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
  if (reusable.size >= count) return family;
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
  requests: readonly DeviceRequest[],
  hint: TopologyHint,
): DeviceAllocation {
  const allocation: Record<string, readonly DeviceAssignment[]> = {};
  let taken = draft.takenDevices;
  for (let next = 0; next < requests.length; next++) {
    const { resource, count } = requests[next]!;
    allocation[resource.name] = assigned(resource, choose(draft, taken, resource, count, hint));
    // Of a PCI device that two resources have, the second must know.
    if (next + 1 < requests.length) taken = devicesLeft(draft, container, allocation).takenDevices;
  }
  return allocation;
}

// Lists never change.
const assignments = new WeakMap<Device, DeviceAssignment>();

function assignmentOf(device: Device): DeviceAssignment {
  let assignment = assignments.get(device);
  if (!assignment) {
    assignment = Object.freeze({ id: device.id, nodes: device.numaNodes });
    assignments.set(device, assignment);
  }
  return assignment;
}

// A set of so many ids is made faster than they are looked through for each device.
const FEW_IDS = 8;

// In the order of the devices.
function assigned({ devices }: DeviceResource, chosen: readonly string[]): readonly DeviceAssignment[] {
  const ids = chosen.length > FEW_IDS ? new Set(chosen) : undefined;
  const own = new Array<DeviceAssignment>(chosen.length);
  let next = 0;
  for (let i = 0; i < devices.length && next < chosen.length; i++) {
    const device = devices[i]!;
    if (ids ? ids.has(device.id) : chosen.includes(device.id)) own[next++] = assignmentOf(device);
  }
  return own;
}

// `taken`: by the pod, with what this container has taken so far.
function choose(
  draft: Draft,
  taken: ReadonlySet<string>,
  resource: DeviceResource,
  count: number,
  hint: TopologyHint,
): readonly string[] {
  const reusable = reusableIds(draft, resource);
  const kept = reusable.size > 0 ? [...reusable].sort(byteOrder).slice(0, count) : NO_LIST;
  const needed = count - kept.length;
  if (needed === 0) return kept;
  const available = availableDevices({ state: draft.state, takenDevices: taken }, resource);
  if (available.length < needed) throw insufficient(resource, count, available.length + kept.length);

  const nodes = isAligned(resource) ? hint.nodes : null;
  // A callback chooses among all of them; else the first will do.
  const most = resource.preferredAllocation ? available.length : needed + 1;
  const aligned = nodes === null ? NO_LIST : nearDevices(available, nodes, most);
  const isEnough = aligned.length > needed;
  // Where the aligned ones do not suffice, all of them are in, and the choice is about the rest.
  const must = isEnough ? kept : kept.concat(aligned);
  if (must.length === count) return must;
  const from = isEnough ? aligned : otherDevices(available, nodes);
  if (!resource.preferredAllocation) {
    const rest = from.slice(0, count - must.length);
    return must.length === 0 ? rest : must.concat(rest);
  }
  const choice = askForPreferred(resource, [...must, ...from].sort(byteOrder), must, count) ?? [];
  const preferred = choice.filter((id) => from.includes(id));
  const rest = from.filter((id) => !preferred.includes(id));
  return [...must, ...preferred, ...rest].slice(0, count);
}

function countIn(nodes: NodeSet, numaNodes: readonly number[]): number {
  let count = 0;
  for (let i = 0; i < numaNodes.length; i++) if (nodes.has(numaNodes[i]!)) count++;
  return count;
}

// Those that are near no other node first. `most`: more are of no use.
function nearDevices(available: readonly Device[], nodes: NodeSet, most: number): readonly string[] {
  const near = new Array<string>(Math.min(most, available.length));
  let next = 0;
  let partlyNear: readonly { readonly id: string; readonly outside: number }[] = [];
  for (let i = 0; i < available.length && next < most; i++) {
    const { id, numaNodes } = available[i]!;
    if (numaNodes === null) continue;
    const inside = countIn(nodes, numaNodes);
    if (inside > 0 && inside === numaNodes.length) near[next++] = id;
    else if (inside > 0) partlyNear = withLast(partlyNear, { id, outside: numaNodes.length - inside });
  }
  if (next === near.length) return near;
  const others = [...partlyNear].sort((a, b) => a.outside - b.outside);
  return near.slice(0, next).concat(others.map(({ id }) => id));
}

// Those that are near none of these nodes, those that tell no node last; all of them where the
// nodes say nothing.
function otherDevices(available: readonly Device[], nodes: NodeSet | null): string[] {
  if (nodes === null) return available.map(({ id }) => id);
  const elsewhere: string[] = [];
  const nowhere: string[] = [];
  for (const { id, numaNodes } of available) {
    if (numaNodes === null) nowhere.push(id);
    else if (countIn(nodes, numaNodes) === 0) elsewhere.push(id);
  }
  return elsewhere.concat(nowhere);
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

/** What is left once a container has been given its devices. */
export function devicesLeft(
  draft: DevicesLeft,
  { kind }: ContainerRequest,
  allocation: DeviceAllocation,
): DevicesLeft {
  const names = Object.keys(allocation);
  if (names.length === 0) return draft;
  const takenDevices = new Set(draft.takenDevices);
  for (const key of deviceKeys(allocation)) takenDevices.add(key);
  // Others than init containers leave nothing behind.
  const changed = kind === 'init' ? names : names.filter((name) => draft.reusableDevices.has(name));
  if (changed.length === 0) return { takenDevices, reusableDevices: draft.reusableDevices };
  const reusableDevices = new Map(draft.reusableDevices);
  for (const name of changed) {
    const devices = allocation[name]!;
    const own = new Set(reusableDevices.get(name));
    for (const { id } of devices) kind === 'init' ? own.add(id) : own.delete(id);
    reusableDevices.set(name, own);
  }
  return { takenDevices, reusableDevices };
}
