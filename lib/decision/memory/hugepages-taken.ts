// HugepagesTaken: fewer hugepages are free than the state expects. Pure.
import type { Assignments } from '../../account/assignments.js';
import { bookedOn, type MemoryBlock } from '../../account/booked-memory.js';
import { formatBytes } from '../../input/values/quantity.js';
import type { NumaNode } from '../../machine/machine-description.js';
import type { Topology } from '../../machine/topology.js';
import type { FreeHugepages } from '../draft/memory-draft.js';
import { allocatableOn, takenByKubelet } from './memory-tables.js';

/**
 * The kernel has fewer hugepages free (`free`) on the grant's NUMA nodes than the record says
 * (`expected`): other programs use or reserve them, or the pool has shrunk. It is a warning and a
 * {@link Flag}. See docs/memory.md.
 * @remedy Have the kernel make more, or find the program that takes them.
 */
export interface HugepagesTaken {
  /** Identifies the kind of warning and flag; literal and stable. */
  readonly code: 'HUGEPAGES_TAKEN';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The type of hugepages, such as `hugepages-2Mi`. */
  readonly resource: string;
  /** Ids of the NUMA nodes that the grant's hugepages are booked on. */
  readonly nodes: readonly number[];
  /** Bytes that the kernel has free and unreserved there. */
  readonly free: number;
  /** Bytes that should be free according to what is granted and reserved. */
  readonly expected: number;
}

/** The blocks on whose nodes the kernel has fewer hugepages free than the state expects. */
export function hugepagesTaken(
  blocks: readonly MemoryBlock[],
  { memory, settings, kubelet }: Assignments,
  topology: Topology,
  kernel: FreeHugepages,
): HugepagesTaken[] {
  const taken = takenByKubelet(kubelet, topology);
  return blocks.flatMap(({ type, nodes }): HugepagesTaken[] => {
    const members = topology.nodes.filter(({ id }) => nodes.includes(id));
    const { byNode = [], unreserved = Number.POSITIVE_INFINITY } = kernel.get(type) ?? {};
    const counts = members.map(({ id }) => byNode[topology.numaNodes.indexOf(id)]);
    if (counts.includes(undefined)) return [];
    const free = Math.min(
      unreserved,
      counts.reduce<number>((sum, bytes) => sum + bytes!, 0),
    );
    const leftOn = (node: NumaNode) =>
      allocatableOn(node, type, settings) - bookedOn(memory, node.id, type) - bookedOn(taken, node.id, type);
    const expected = members.reduce((sum, node) => sum + Math.max(0, leftOn(node)), 0);
    if (free >= expected) return [];
    const where = `NUMA node${nodes.length > 1 ? 's' : ''} ${nodes.join(', ')}`;
    const message = `${type} on ${where}: ${formatBytes(expected)} should be free, the kernel has ${formatBytes(free)}; others use or reserve them, or the pool has shrunk`;
    return [Object.freeze({ code: 'HUGEPAGES_TAKEN', message, resource: type, nodes, free, expected })];
  });
}
