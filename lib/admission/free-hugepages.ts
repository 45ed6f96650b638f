// Reads what the kernel has free of hugepages, where a decision or a flag asks for it: a file for each
// type and NUMA node, and two of each type for the machine.
import type { Assignments } from '../account/assignments.js';
import {
  type FreeHugepages,
  type KernelHugepages,
  UNKNOWN_HUGEPAGES,
} from '../decision/memory/memory-draft.js';
import type { AdmissionRequest } from '../input/request.js';
import { pageBytes } from '../input/values/memory-types.js';
import { countFreeHugepages, countUnreservedHugepages } from '../machine/hugepages.js';
import type { Topology } from '../machine/topology.js';

/** Of some resources; those that are no hugepages are left out. Of a described machine nothing. */
export function freeHugepages(
  { isSimulated, numaNodes }: Topology,
  resources: Iterable<string>,
): FreeHugepages {
  let free: Map<string, KernelHugepages> | undefined;
  if (isSimulated) return UNKNOWN_HUGEPAGES;
  for (const type of resources) {
    const page = pageBytes(type);
    if (page === undefined || free?.has(type)) continue;
    free ??= new Map();
    free.set(type, kernelHugepages(page, numaNodes));
  }
  return free ?? UNKNOWN_HUGEPAGES;
}

function kernelHugepages(page: number, numaNodes: readonly number[]): KernelHugepages {
  const bytes = (pages: number | undefined) => (pages === undefined ? undefined : pages * page);
  return {
    byNode: numaNodes.map((node) => bytes(countFreeHugepages(page, node))),
    unreserved: bytes(countUnreservedHugepages(page)),
  };
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
  const asking = pod.resources ? [pod.resources, ...pod.containers] : pod.containers;
  const free = freeHugepages(
    topology,
    asking.flatMap(({ requests }) => Object.keys(requests)),
  );
  return free.size === 0 ? undefined : free;
}
