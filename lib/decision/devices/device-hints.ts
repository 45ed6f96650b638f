// The hints of the Device Manager. Follows the kubelet (v1.32 and v1.36). Pure, except for
// preferred-allocation callbacks.
import { oncePerLast } from '../../base/collections/once-per.js';
import { native } from '../../base/native.js';
import type { Device } from '../../input/devices.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import { maskOf } from '../../machine/hint-masks.js';
import { HintFamily } from '../../machine/hints.js';
import type { Hints } from '../hints/merge-hints.js';
import { availableDevices, type DeviceDraft, type DeviceRequest, reusableIds } from './device-draft.js';
import { askForPreferred, type DeviceResource, isAligned } from './device-resources.js';

// The columns of a device for the core: the low and high half of its mask, and its flags.
const DEVICE_COLUMNS = 3;

// Rows of an unchanged machine with the flags of the available devices.
const rowsOfAvailable = new WeakMap<
  readonly Device[],
  { readonly numaNodes: readonly number[]; readonly rows: readonly number[] }
>();

// Rows without flags.
const plainRows = oncePerLast((devices: readonly Device[], numaNodes: readonly number[]) =>
  devices.flatMap((device) => [...maskOf(device.numaNodes ?? [], numaNodes), 0]),
);

function rowsOf(
  resource: DeviceResource,
  numaNodes: readonly number[],
  available: readonly Device[],
  reusable: ReadonlySet<string>,
): readonly number[] {
  const cached = reusable.size === 0 ? rowsOfAvailable.get(available) : undefined;
  if (cached?.numaNodes === numaNodes) return cached.rows;
  const { devices } = resource;
  const rows = plainRows(devices, numaNodes).slice();
  let next = 0;
  for (let i = 0; i < devices.length; i++) {
    // Both lists have the same order.
    const isAvailable = devices[i] === available[next];
    if (isAvailable) next++;
    rows[DEVICE_COLUMNS * i + 2] = (isAvailable ? 1 : 0) | (reusable.has(devices[i]!.id) ? 2 : 0);
  }
  if (reusable.size === 0) rowsOfAvailable.set(available, { numaNodes, rows });
  return rows;
}

/**
 * The hints for `count` devices of a resource. Devices without NUMA nodes give no preference.
 * @throws ERR_PREFERRED_ALLOCATION
 */
export function deviceHints(draft: DeviceDraft, deviceRequest: DeviceRequest): Hints {
  const { topology, placement } = draft;
  const { resource, count } = deviceRequest;
  const { devices } = resource;
  if (!isAligned(resource)) return HintFamily.from(null, topology.numaNodes);
  if (count > devices.length) return HintFamily.from([], topology.numaNodes);
  const available = availableDevices(draft, resource);
  const reusable = reusableIds(draft, resource);
  const rows = rowsOf(resource, topology.numaNodes, available, reusable);
  const onlyNearDevices = placement.kubeletVersion !== 'v1.32';
  const call = { nodes: topology.nodes.length, request: count, onlyNearDevices, devices: rows };
  if (!resource.preferredAllocation) return { kind: 'devices', call };
  const family = new HintFamily(native.deviceHints(call), topology.numaNodes);
  return withoutPoorChoices(family, deviceRequest, available, reusable);
}

// The callback runs under the lock, so numalign asks it about at most this many sets of NUMA nodes.
const MOST_CHOICES = 256;

// Withdraws the preference for masks in which the callback finds no good choice, if it finds one in
// others.
function withoutPoorChoices(
  family: HintFamily,
  { resource, count }: DeviceRequest,
  available: readonly Device[],
  reusable: ReadonlySet<string>,
): HintFamily {
  if (reusable.size >= count) return family;
  // Preferred hints are the narrowest and come first.
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
    const left = ids.filter((id) => reusable.has(id));
    const choice = askForPreferred(resource, ids, left, count);
    if (choice === null || choice.length === count) isAnyGood = true;
    else refused.push(nodes!);
  }
  return isAnyGood && refused.length > 0 ? family.withoutPreferred(refused) : family;
}
