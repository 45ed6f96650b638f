// The memory available to a pod at one step of its decision.
import type { Assignments } from '../../account/assignments.js';
import type { BookedMemory, MemoryBlock } from '../../account/booked-memory.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';

/** Bytes of a hugepage type that are free in the kernel; undefined if unknown. */
export interface KernelHugepages {
  /** By position of the NUMA node. */
  readonly byNode: readonly (number | undefined)[];
  /**
   * On all nodes together, without pages that mappings have reserved but not touched. Those are
   * promised, and the kernel does not say on which node.
   */
  readonly unreserved: number | undefined;
}

/** The kernel's free hugepages, by type. */
export type FreeHugepages = ReadonlyMap<string, KernelHugepages>;

/** For a described machine, or if numalign has not read the kernel's numbers. */
export const UNKNOWN_HUGEPAGES: FreeHugepages = new Map();

/** The same at the positions of some nodes. */
export const hugepagesAt = (pages: FreeHugepages, isKept: (at: number) => boolean): FreeHugepages =>
  new Map(
    Array.from(pages, ([type, { byNode, unreserved }]) => [
      type,
      { byNode: byNode.filter((_, at) => isKept(at)), unreserved },
    ]),
  );

/** The memory of a container. */
export interface ContainerMemory {
  readonly name: string;
  readonly kind: ContainerRequest['kind'];
  readonly blocks: readonly MemoryBlock[];
}

/** The machine's memory while a pod is placed on it. */
export interface MemoryDraft {
  /**
   * Everything booked, with what the pod has taken so far; computed on demand. Undefined before it has
   * taken any, see {@link bookedIn}.
   */
  readonly booked: (() => BookedMemory) | undefined;
  /**
   * The containers with memory. What a later container took over from an init container is listed
   * with the later one.
   */
  readonly containers: readonly ContainerMemory[];
  /**
   * By node: the nodes whose memory is allocated together with it; undefined: as for the pods on
   * record.
   */
  readonly groups: ReadonlyMap<number, readonly number[]> | undefined;
  /** What init containers left for later ones, on exactly these nodes. */
  readonly reusable: readonly MemoryBlock[];
}

/** Everything booked at one step of a decision. `state`: without the pod. */
export const bookedIn = (state: Pick<Assignments, 'memory'>, { booked }: MemoryDraft): BookedMemory =>
  booked ? booked() : state.memory;

/** Before the pod has taken any. Shared, because drafts never change. */
export const NO_MEMORY: MemoryDraft = { booked: undefined, containers: [], groups: undefined, reusable: [] };
