// Reads what the kernel has free of hugepages, where a decision or a flag asks for it: a file for each
// type and NUMA node.
import type { Assignments } from '../account/assignments.js';
import { type FreeHugepages, UNKNOWN_HUGEPAGES } from '../decision/memory/memory-draft.js';
import { pageBytes } from '../input/memory-types.js';
import type { AdmissionRequest } from '../input/request.js';
import { countHugepages } from '../machine/hugepages.js';
import type { Topology } from '../machine/topology.js';

/** Of some resources; those that are no hugepages are left out. Of a described machine nothing. */
export function freeHugepages(
  { isSimulated, numaNodes }: Topology,
  resources: Iterable<string>,
): FreeHugepages {
  let free: Map<string, (number | undefined)[]> | undefined;
  if (isSimulated) return UNKNOWN_HUGEPAGES;
  for (const type of resources) {
    const page = pageBytes(type);
    if (page === undefined || free?.has(type)) continue;
    free ??= new Map();
    free.set(
      type,
      numaNodes.map((node) => bytesOn(page, node)),
    );
  }
  return free ?? UNKNOWN_HUGEPAGES;
}

function bytesOn(page: number, node: number): number | undefined {
  const pages = countHugepages(page, 'free', node);
  return pages === undefined ? undefined : pages * page;
}

/** Of what is booked in a state. */
export function freeOfBooked({ memory }: Assignments, topology: Topology): FreeHugepages {
  return freeHugepages(topology, Object.values(memory).flatMap(Object.keys));
}

/** By which a request is decided that is strict about hugepages. */
export function freeForStrict(
  { pod, placement }: AdmissionRequest,
  topology: Topology,
): FreeHugepages | undefined {
  if (!placement.strictHugepages) return undefined;
  const free = freeHugepages(
    topology,
    pod.containers.flatMap(({ requests }) => Object.keys(requests)),
  );
  return free.size === 0 ? undefined : free;
}
