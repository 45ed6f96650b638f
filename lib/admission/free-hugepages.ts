// Reads the kernel's free hugepages if a decision or a flag needs them: one file per type and NUMA
// node, and two per type for the machine.
import type { Assignments } from '../account/assignments.js';
import {
  type FreeHugepages,
  type KernelHugepages,
  UNKNOWN_HUGEPAGES,
} from '../decision/draft/memory-draft.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import { pageBytes } from '../input/values/memory-types.js';
import { countFreeHugepages, countUnreservedHugepages } from '../machine/hugepages.js';
import type { Topology } from '../machine/topology.js';

/** The free hugepages of some resources, in bytes; unknown for others, or if simulated. */
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

/** The free hugepages of the types that a state books. */
export function freeOfBooked({ memory }: Assignments, topology: Topology): FreeHugepages {
  return freeHugepages(topology, Object.values(memory).flatMap(Object.keys));
}

/** The free hugepages that limit a request; undefined unless it is strict and asks for some. */
export function freeForStrict(
  { pod, placement }: AdmissionRequest,
  topology: Topology,
): FreeHugepages | undefined {
  if (!placement.strictHugepages) return undefined;
  const requesters = pod.resources ? [pod.resources, ...pod.containers] : pod.containers;
  const free = freeHugepages(
    topology,
    requesters.flatMap(({ requests }) => Object.keys(requests)),
  );
  return free.size === 0 ? undefined : free;
}
