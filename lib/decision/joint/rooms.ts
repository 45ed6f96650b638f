// Rooms: how much each NUMA node has free of everything that its machine has, whether it is asked for
// or not. Of nodes that will do as well, those with the least are taken: what is left whole stays
// whole, and a request without devices keeps off the nodes that have some. Pure.
import { hugepageType, MEMORY } from '../../input/values/memory-types.js';
import { sizeOfBoth } from '../../machine/id-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../cpus/draft.js';
import { availableDevices } from '../devices/device-draft.js';
import { isMemoryKnown, memoryRow } from '../memory/memory-tables.js';

// All that the machine has of a resource, in whole numbers: sums of these depend on no order.
const WHOLE = 2 ** 20;

/** By position of the node: the sum of its shares in what the machine has of each resource. */
export function roomsOf(draft: Draft): readonly number[] {
  const { topology, free, reusable, resources } = draft;
  const rooms = topology.nodes.map(() => 0);
  const add = (total: number, amountOf: (at: number) => number) => {
    if (total === 0) return;
    for (let at = 0; at < rooms.length; at++) rooms[at]! += Math.floor((WHOLE * amountOf(at)) / total);
  };
  const cpus = free.union(reusable);
  add(topology.cpus.size, (at) => sizeOfBoth(topology.nodes[at]!.cpus, cpus));
  for (const type of typesOf(topology)) {
    const row = memoryRow(draft, type);
    add(sumOf(row.allocatable), (at) => Math.min(row.free[at]!, row.allocatable[at]!));
  }
  for (const resource of resources.values()) {
    const available = availableDevices(draft, resource);
    add(resource.devices.length, (at) => {
      const node = topology.numaNodes[at]!;
      return available.reduce((n, { numaNodes }) => n + (numaNodes?.includes(node) ? 1 : 0), 0);
    });
  }
  return rooms;
}

const sumOf = (amounts: readonly number[]) => amounts.reduce((sum, amount) => sum + amount, 0);

// Of machines, which never change.
const typesKnown = new WeakMap<Topology, readonly string[]>();

function typesOf(topology: Topology): readonly string[] {
  let types = typesKnown.get(topology);
  if (!types) {
    const pages = topology.nodes.flatMap(({ hugepages }) =>
      hugepages.map(({ bytes }) => hugepageType(bytes)),
    );
    types = isMemoryKnown(topology) ? [...new Set([MEMORY, ...pages])] : [];
    typesKnown.set(topology, types);
  }
  return types;
}
