// Rooms: how much of everything each NUMA node has free, requested or not. Of equally good nodes,
// the choice takes those with the least: whole nodes stay whole, and a request without devices
// avoids nodes with devices. `spread` takes those with the most. JointRules: what the merge of joint
// placement prefers. Pure.
import { oncePer } from '../../base/collections/once-per.js';
import type { MergeRules } from '../../base/native-hints.js';
import type { Words } from '../../base/words.js';
import { preferenceOf } from '../../input/placement.js';
import type { TopologyManagerPolicy } from '../../input/policies.js';
import { hugepageType, MEMORY } from '../../input/values/memory-types.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import { maskOf } from '../../machine/hint-masks.js';
import { sizeOfBoth } from '../../machine/id-set.js';
import type { CpuGroup } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';
import { availableDevices, countNear, type DeviceRequest, reusableIds } from '../devices/device-draft.js';
import type { Draft } from '../draft/draft.js';
import { policyAt } from '../hints/merge-hints.js';
import { isMemoryKnown } from '../memory/memory-tables.js';
import { offeredRow } from '../memory/memory-tiers.js';

// All of a machine's resource. Whole numbers, so that sums do not depend on their order.
const WHOLE = 2 ** 20;

/** By position of the node: less is better, in a sum over as many nodes. */
export function roomsOf(draft: Draft): readonly number[] {
  const rooms = freeShares(draft);
  if (preferenceOf(draft.placement) === 'packed') return rooms;
  const most = Math.max(...rooms);
  return rooms.map((room) => most - room);
}

// By position of the node: the sum of its shares in the machine's total of each resource.
function freeShares(draft: Draft): readonly number[] {
  const { topology, free, reusable, resources } = draft;
  const rooms = topology.nodes.map(() => 0);
  const add = (total: number, amountOf: (at: number) => number) => {
    if (total === 0) return;
    for (let at = 0; at < rooms.length; at++) rooms[at]! += Math.floor((WHOLE * amountOf(at)) / total);
  };
  const cpus = free.union(reusable);
  add(topology.cpus.size, (at) => sizeOfBoth(topology.nodes[at]!.cpus, cpus));
  for (const type of typesOf(topology)) {
    const row = offeredRow(draft, type);
    add(sumOf(row.allocatable), (at) => Math.min(row.free[at]!, row.allocatable[at]!));
  }
  for (const resource of resources.values()) {
    const available = availableDevices(draft, resource);
    add(resource.devices.length, (at) => countNear(available, topology.numaNodes[at]!));
  }
  return rooms;
}

const sumOf = (amounts: readonly number[]) => amounts.reduce((sum, amount) => sum + amount, 0);

const typesOf = oncePer((topology: Topology): readonly string[] => {
  if (!isMemoryKnown(topology)) return [];
  const pages = topology.nodes.flatMap(({ hugepages }) => hugepages.map(({ bytes }) => hugepageType(bytes)));
  return [...new Set([MEMORY, ...pages])];
});

// By position of the node: how many of the requested devices can come from it.
function devicesBeside(draft: Draft, requests: readonly DeviceRequest[]): readonly number[] {
  const near = requests.map(({ resource, count }) => {
    const reusable = reusableIds(draft, resource);
    const kept = resource.devices.filter(({ id }) => reusable.has(id));
    return { count, devices: [...availableDevices(draft, resource), ...kept] };
  });
  const countFrom = (node: number) =>
    near.reduce((sum, { count, devices }) => sum + Math.min(count, countNear(devices, node)), 0);
  return requests.length === 0 ? [] : draft.topology.numaNodes.map(countFrom);
}

// More than there are pairs of 64 nodes, so that packages decide only between equal distances.
const UNIT = 2 ** 12;
const NO_DISTANCES = new Uint32Array();

// Distances, and as the least difference whether nodes are in one package: firmware says the same of
// many nodes, or nothing. None: all are as near.
const nearness = oncePer(({ distances = NO_DISTANCES, nodes, packages }: Topology): Words => {
  const own = nodes.map(({ cpus }) => packages.filter((each) => each.cpus.intersects(cpus)));
  // Packages say nothing of nodes that have several.
  const isVague = own.some(({ length }) => length > 1);
  if (isVague || distances.some((distance) => distance >= 2 ** 32 / UNIT)) return distances;
  const row = (a: CpuGroup | undefined, at: number) =>
    own.map(([b], to) => UNIT * (distances[at * own.length + to] ?? 0) + (a && b && a !== b ? 1 : 0));
  return Uint32Array.from(own.flatMap(([a], at) => row(a, at)));
});

/** `within`: the nodes to choose from; undefined: all. `devices`: CPUs and memory go beside these. */
export function jointRules(
  draft: Draft,
  policy: TopologyManagerPolicy,
  within: NodeSet | undefined,
  devices: readonly DeviceRequest[],
): MergeRules {
  const { numaNodes } = draft.topology;
  const joint = {
    within: maskOf(within ?? numaNodes, numaNodes),
    rooms: roomsOf(draft),
    devices: devicesBeside(draft, devices),
  };
  return { numaNodes, policy: policyAt(policy), distances: nearness(draft.topology), joint };
}
