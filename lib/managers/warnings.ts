// Warnings: what does not stand in the way of an admission, and the caller should know all the same.
import { countHugepages } from '../hugepages.js';
import { pageBytes } from '../memory-types.js';
import { isExtendedResource } from '../pod-request.js';
import { formatBytes } from '../quantity.js';
import { type Assignments, memoryOf, type PodAssignment } from '../state/assignments.js';
import type { StateRecovered } from '../state/store.js';
import type { Topology } from '../topology.js';
import type { Question } from './decision.js';
import { memoryTables } from './memory-manager.js';

/** The kernel has fewer hugepages free on some NUMA nodes than there should be: others use them, or the pool has become smaller. */
export interface HugepagesTaken {
  readonly code: 'HUGEPAGES_TAKEN';
  readonly message: string;
  /** The hugepage type. */
  readonly resource: string;
  readonly nodes: readonly number[];
  /** Bytes that the kernel has free there. */
  readonly free: number;
  /** Bytes that should be free, by what is granted and reserved. */
  readonly expected: number;
}

/** A device was asked for that nobody gives out here: no list of devices is registered for it, and there are no custom hint providers. */
export interface ResourceUnknown {
  readonly code: 'RESOURCE_UNKNOWN';
  readonly message: string;
  readonly resource: string;
}

/** Something that does not stand in the way of an admission, and that its caller should know. */
export type Warning = HugepagesTaken | ResourceUnknown | StateRecovered;

/** What is to be told of a pod that is admitted. Reads of the kernel what hugepages are free, where some are booked. */
export function warningsOf(pod: PodAssignment, question: Question): readonly Warning[] {
  return [...hugepageWarnings(pod, question.state, question.topology), ...resourceWarnings(question)];
}

// `before`: the state without the pod. Simulated machines have no kernel.
function hugepageWarnings(pod: PodAssignment, before: Assignments, topology: Topology): Warning[] {
  if (topology.isSimulated) return [];
  const blocks = memoryOf(pod).filter(({ type }) => pageBytes(type) !== undefined);
  if (blocks.length === 0) return [];
  const tables = memoryTables(before, topology);
  return blocks.flatMap(({ type, nodes }): Warning[] => {
    const own = tables.filter((table) => table.type === type && nodes.includes(table.node));
    const expected = own.reduce((sum, table) => sum + table.free, 0);
    const page = pageBytes(type)!;
    const told = nodes.map((node) => countHugepages(page, 'free', node));
    if (told.includes(undefined)) return [];
    const free = told.reduce<number>((sum, pages) => sum + pages! * page, 0);
    if (free >= expected) return [];
    const where = `NUMA node${nodes.length > 1 ? 's' : ''} ${nodes.join(', ')}`;
    const message = `${type} on ${where}: ${formatBytes(expected)} should be free, the kernel has ${formatBytes(free)}; others use them, or the pool has become smaller`;
    return [Object.freeze({ code: 'HUGEPAGES_TAKEN', message, resource: type, nodes, free, expected })];
  });
}

function resourceWarnings({ request, resources, providers }: Question): Warning[] {
  if (providers.length > 0) return [];
  const asked = new Set(
    request.pod.containers.flatMap(({ requests }) => Object.keys(requests).filter((name) => requests[name]! > 0)),
  );
  return [...asked]
    .filter((name) => isExtendedResource(name) && !resources.has(name))
    .map((resource) => {
      const message = `nobody gives out ${resource} here: register its devices, or a hint provider`;
      return Object.freeze({ code: 'RESOURCE_UNKNOWN', message, resource });
    });
}
