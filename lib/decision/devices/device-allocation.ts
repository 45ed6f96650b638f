// Which devices a container gets. Follows the kubelet's Device Manager (v1.32 and v1.36), which
// picks among equals at random; here the lowest id comes first. Pure, except for
// preferred-allocation callbacks.
import type { DeviceAssignment } from '../../account/pod-assignment.js';
import { withLast } from '../../base/collections/lists.js';
import { oncePer } from '../../base/collections/once-per.js';
import { type Refusal, refusal } from '../../base/refusal.js';
import { byteOrder, type Device } from '../../input/devices.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import type { TopologyHint } from '../../machine/hints.js';
import {
  availableDevices,
  type DeviceAllocation,
  type DeviceDraft,
  type DeviceRequest,
  devicesLeft,
  reusableIds,
} from './device-draft.js';
import { askForPreferred, type DeviceResource, isAligned } from './device-resources.js';

/** Where devices should be. `beside`: those near these nodes come first among all that will do. */
interface Nearness extends Pick<TopologyHint, 'nodes'> {
  readonly beside?: NodeSet | null;
}

const NO_LIST: readonly string[] = [];

/**
 * Takes devices for one container: first what init containers left, then devices near the hint's
 * NUMA nodes, then any.
 * @throws ERR_INSUFFICIENT_DEVICES, ERR_PREFERRED_ALLOCATION
 */
export function allocateDevices(
  draft: DeviceDraft,
  container: ContainerRequest,
  requests: readonly DeviceRequest[],
  near: Nearness,
): DeviceAllocation {
  const allocation: Record<string, readonly DeviceAssignment[]> = {};
  let taken = draft.takenDevices;
  for (let next = 0; next < requests.length; next++) {
    const request = requests[next]!;
    const { resource } = request;
    allocation[resource.name] = assigned(resource, choose(draft, taken, request, near));
    // Two resources may share a PCI device, so the next one must know.
    if (next + 1 < requests.length) taken = devicesLeft(draft, container, allocation).takenDevices;
  }
  return allocation;
}

const assignmentOf = oncePer(
  ({ id, numaNodes }: Device): DeviceAssignment => Object.freeze({ id, nodes: numaNodes }),
);

// Above this number, a set is faster than searching the list for each device.
const FEW_IDS = 8;

// Returns them in the order of the devices.
function assigned({ devices }: DeviceResource, chosen: readonly string[]): readonly DeviceAssignment[] {
  const ids = chosen.length > FEW_IDS ? new Set(chosen) : undefined;
  const chosenDevices = new Array<DeviceAssignment>(chosen.length);
  let next = 0;
  for (let i = 0; i < devices.length && next < chosen.length; i++) {
    const device = devices[i]!;
    if (ids ? ids.has(device.id) : chosen.includes(device.id)) chosenDevices[next++] = assignmentOf(device);
  }
  return chosenDevices;
}

// `taken`: the pod's devices, with those of this container so far.
function choose(
  draft: DeviceDraft,
  taken: ReadonlySet<string>,
  { resource, count }: DeviceRequest,
  { nodes: hinted, beside = null }: Nearness,
): readonly string[] {
  const reusable = reusableIds(draft, resource);
  const kept = reusable.size > 0 ? [...reusable].sort(byteOrder).slice(0, count) : NO_LIST;
  const needed = count - kept.length;
  if (needed === 0) return kept;
  const free = availableDevices({ state: draft.state, takenDevices: taken }, resource);
  const available = isAligned(resource) ? besideFirst(free, beside) : free;
  if (available.length < needed) throw insufficient(resource, count, available.length + kept.length);

  const nodes = isAligned(resource) ? hinted : null;
  // A callback chooses among all of them; without one, the first suffice.
  const most = resource.preferredAllocation ? available.length : needed + 1;
  const aligned = nodes === null ? NO_LIST : nearDevices(available, nodes, most);
  const isEnough = aligned.length > needed;
  // If the aligned devices do not suffice, take all of them and choose the rest.
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

function besideFirst(devices: readonly Device[], nodes: NodeSet | null): readonly Device[] {
  if (nodes === null) return devices;
  const isBeside = ({ numaNodes }: Device) => numaNodes !== null && countIn(nodes, numaNodes) > 0;
  return [...devices.filter(isBeside), ...devices.filter((device) => !isBeside(device))];
}

// Devices near no other node come first. `most`: stops at this number.
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

// Devices near none of these nodes; those without nodes come last. All devices if `nodes` is null.
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
  const message = `${count} devices of ${name} requested: ${free} free${why}`;
  return refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_DEVICES', message, {
    value: count,
    valid: free > 0 ? `1 to ${free}` : 'none now',
    resource: name,
  });
}
