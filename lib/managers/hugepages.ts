// What the kernel really has of hugepages beside what the account of grants says: others use them too, and pools change.
import { readFileSync } from 'node:fs';
import { pageBytes } from '../memory-types.js';
import { formatBytes } from '../quantity.js';
import { type Assignments, memoryOf, type PodAssignment } from '../state/assignments.js';
import type { Topology } from '../topology.js';
import { memoryTables } from './memory-manager.js';

/** Something that does not stand in the way of an admission, and that its caller should know. */
export interface Warning {
  /** HUGEPAGES_TAKEN: the kernel has fewer hugepages free on these NUMA nodes than nobody has been granted. */
  readonly code: 'HUGEPAGES_TAKEN';
  readonly message: string;
  /** The hugepage type. */
  readonly type: string;
  readonly nodes: readonly number[];
  /** Bytes that the kernel has free there. */
  readonly free: number;
  /** Bytes that should be free, by what is granted and reserved. */
  readonly expected: number;
}

// Nothing where the kernel does not tell (any more).
function freeBytes(node: number, page: number): number {
  const pool = `/sys/devices/system/node/node${node}/hugepages/hugepages-${page / 1024}kB`;
  try {
    return page * Number(readFileSync(`${pool}/free_hugepages`, 'utf8'));
  } catch {
    return 0;
  }
}

/** Where hugepages are booked for a pod, and the kernel has less of them than `before`, the state without the pod, leaves free. Simulated machines have no kernel. */
export function hugepageWarnings(pod: PodAssignment, before: Assignments, topology: Topology): readonly Warning[] {
  if (topology.isSimulated) return [];
  const blocks = memoryOf(pod).filter(({ type }) => pageBytes(type) !== undefined);
  if (blocks.length === 0) return [];
  const tables = memoryTables(before, topology);
  return blocks.flatMap(({ type, nodes }): Warning[] => {
    const own = tables.filter((table) => table.type === type && nodes.includes(table.node));
    const expected = own.reduce((sum, table) => sum + table.free, 0);
    const free = nodes.reduce((sum, node) => sum + freeBytes(node, pageBytes(type)!), 0);
    if (free >= expected) return [];
    const where = `NUMA node${nodes.length > 1 ? 's' : ''} ${nodes.join(', ')}`;
    const message = `${type} on ${where}: ${formatBytes(expected)} should be free, the kernel has ${formatBytes(free)}; others use them, or the pool has become smaller`;
    return [Object.freeze({ code: 'HUGEPAGES_TAKEN', message, type, nodes, free, expected })];
  });
}
