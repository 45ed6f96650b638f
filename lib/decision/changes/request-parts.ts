// RequestParts: the parts of a request, and the NUMA nodes on which its policy could admit each
// part, whatever moves. Pure.
import { native } from '../../base/native.js';
import { isStrict } from '../../input/placement.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import { maskOf } from '../../machine/hint-masks.js';
import { HintFamily } from '../../machine/hints.js';
import { wantedBy } from '../alignment.js';
import { cpuCount, machineFor } from '../cpus/cpu-choices.js';
import { mustAddUp, podClaims } from '../cpus/cpu-manager.js';
import { availableDevices, type DeviceRequest } from '../devices/device-draft.js';
import { deviceHints } from '../devices/device-hints.js';
import type { Draft } from '../draft/draft.js';
import { isBookedWhole } from '../draft/partition.js';
import type { Hints } from '../hints/merge-hints.js';
import { memoryHints } from '../memory/memory-hints.js';
import type { MemoryRequest } from '../memory/memory-requests.js';
import { isTiered, offeredRow } from '../memory/memory-tiers.js';
import { nodesToTry } from './nodes-to-try.js';

type Mask = readonly [low: number, high: number];

/** The nodes of a part's CPUs, and those of its memory. */
export interface PartNodes {
  readonly cpus: Mask;
  readonly memory: Mask;
}

/** A container, or the pod as a whole. */
export interface RequestPart {
  readonly count: number;
  readonly memory: readonly MemoryRequest[];
  readonly places: readonly PartNodes[];
  /** False for an init container: later containers may reuse what it had. */
  readonly stays: boolean;
}

/** What a part asks for. */
interface Demand {
  readonly container: ContainerRequest | undefined;
  readonly count: number;
  readonly memory: readonly MemoryRequest[];
  readonly devices: readonly DeviceRequest[];
}

// The most hints to look at, the narrowest first.
const MOST_HINTS = 4096;

/**
 * The parts of the request; undefined if one of them has no place, whatever moves. REQUIRES: a
 * draft without placed containers.
 */
export function requestParts(draft: Draft): readonly RequestPart[] | undefined {
  const { pod, placement } = draft;
  const isAligned = placement.topologyPolicy !== 'none';
  const isWhole = isBookedWhole(pod, placement) || (isAligned && placement.scope === 'pod');
  const containers = isWhole ? [undefined] : pod.containers;
  const parts: RequestPart[] = [];
  for (const container of containers) {
    const part = partOf(draft, container);
    if (part.places.length === 0) return undefined;
    if (part.count > 0 || part.memory.length > 0) parts.push(part);
  }
  return parts;
}

function partOf(draft: Draft, container: ContainerRequest | undefined): RequestPart {
  const { placement } = draft;
  const count = cpuCount(draft, container);
  const { devices, memory } = wantedBy(draft, container, false);
  const demand = { container, count, memory, devices };
  const places = isStrict(placement) ? strictPlaces(draft, demand) : freePlaces(draft, demand);
  // Whether there is room on its tiers, only a decision knows.
  const booked = isTiered(draft) ? [] : memory;
  return { count, memory: booked, places, stays: container?.kind !== 'init' };
}

// The places under a policy that accepts any nodes. Devices do not move, so enough must be free.
function freePlaces(draft: Draft, { memory, devices }: Demand): readonly PartNodes[] {
  const { topology } = draft;
  if (devices.some(({ resource, count }) => availableDevices(draft, resource).length < count)) return [];
  const all = maskOf(topology.numaNodes, topology.numaNodes);
  if (memory.length === 0) return [{ cpus: all, memory: all }];
  return nodesToTry(topology).list.map(({ mask }) => ({ cpus: all, memory: mask }));
}

// The places under a strict policy: all providers must prefer the same nodes.
function strictPlaces(draft: Draft, demand: Demand): readonly PartNodes[] {
  const { topology, placement } = draft;
  const { container, count, memory, devices } = demand;
  const families = [
    ...devices.map((request) => familyOf(draft, deviceHints(draft, request))),
    ...(count > 0 ? [cpuFamily(draft, container, count)] : []),
    ...(memory.length > 0 ? [memoryFamily(draft, memory)] : []),
  ].filter(({ isAny }) => !isAny);
  if (families.length === 0) return freePlaces(draft, demand);
  const isFitting = ({ size }: NodeSet) => placement.topologyPolicy === 'restricted' || size === 1;
  const sets = families.map((family) => preferredSets(family, isFitting));
  const [first, ...others] = sets as [Map<string, NodeSet>, ...Map<string, NodeSet>[]];
  return [...first]
    .filter(([key]) => others.every((other) => other.has(key)))
    .map(([, nodes]) => maskOf(nodes, topology.numaNodes))
    .map((mask) => ({ cpus: mask, memory: mask }));
}

function preferredSets(family: HintFamily, isFitting: (nodes: NodeSet) => boolean): Map<string, NodeSet> {
  const sets = new Map<string, NodeSet>();
  for (const { nodes, preferred } of family.first(MOST_HINTS))
    if (nodes && preferred && isFitting(nodes)) sets.set(nodes.toString(), nodes);
  return sets;
}

// The hints as if all CPUs were free.
function cpuFamily(draft: Draft, container: ContainerRequest | undefined, count: number): HintFamily {
  const { topology, placement } = draft;
  const machine = machineFor(draft);
  if (count > machine.cpus.size) return HintFamily.from([], topology.numaNodes);
  const call = {
    topology: machine.handle,
    available: machine.cpus.words,
    reusable: new Uint32Array(),
    count,
    alignBySocket: placement.alignBySocket,
    wholeCores: mustAddUp(machine, placement),
    keepsReusable: false,
    claims: container ? [] : podClaims(draft),
  };
  return new HintFamily(native.cpuHints(call), topology.numaNodes);
}

// The hints as if all memory were free.
function memoryFamily(draft: Draft, memory: readonly MemoryRequest[]): HintFamily {
  const { call } = memoryHints(draft, memory)!;
  const amounts = memory.flatMap(({ type, bytes }) => {
    const { allocatable } = offeredRow(draft, type);
    return [bytes, ...allocatable, ...allocatable];
  });
  const words = native.memoryHints({ ...call, amounts, groups: [], must: [], closed: [] });
  return new HintFamily(words, draft.topology.numaNodes);
}

function familyOf({ topology }: Draft, hints: Hints): HintFamily {
  if (hints instanceof HintFamily) return hints;
  if (hints.kind !== 'devices') throw new TypeError('expected hints for devices');
  return new HintFamily(native.deviceHints(hints.call), topology.numaNodes);
}
