// The memory that a pod can have, as far as its decision has come.
import type { Assignments } from '../../account/assignments.js';
import type { BookedMemory, MemoryBlock } from '../../account/booked-memory.js';
import type { Placement } from '../../input/placement.js';
import type { PodRequest } from '../../input/pods/pod-request.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { Topology } from '../../machine/topology.js';

/** Bytes that the kernel has free of a hugepage type; undefined where it does not tell. */
export interface KernelHugepages {
  /** By position of the NUMA node. */
  readonly byNode: readonly (number | undefined)[];
  /**
   * On all nodes together, without those that mappings have reserved and not touched: they are
   * promised, and no node knows which of them are its own.
   */
  readonly unreserved: number | undefined;
}

/** What the kernel has free, by hugepage type. */
export type FreeHugepages = ReadonlyMap<string, KernelHugepages>;

/** Nothing is known: of a described machine, or where nobody has asked. */
export const UNKNOWN_HUGEPAGES: FreeHugepages = new Map();

/** What a container has. */
export interface ContainerMemory {
  readonly name: string;
  readonly kind: ContainerRequest['kind'];
  readonly blocks: readonly MemoryBlock[];
}

/** The memory of a machine while a pod is placed on it. */
export interface MemoryDraft {
  /** With what the pod has taken so far: found where it is asked for. */
  readonly booked: () => BookedMemory;
  /**
   * What its containers have that have any; what a later one has taken over from an init container
   * is the later one's.
   */
  readonly containers: readonly ContainerMemory[];
  /**
   * By node those that its memory is allocated together with; undefined: as the pods on record have
   * it.
   */
  readonly groups: ReadonlyMap<number, readonly number[]> | undefined;
  /** What init containers have left behind for later ones on just these nodes. */
  readonly reusable: readonly MemoryBlock[];
}

/** What memory is booked by. */
export interface MemoryGround {
  readonly topology: Topology;
  /** Without the pod. */
  readonly state: Assignments;
  readonly pod: PodRequest;
  readonly placement: Placement;
  readonly memory: MemoryDraft;
  /** What the kernel has free of hugepages, where that must do. */
  readonly hugepages?: FreeHugepages | undefined;
  /** Of the only container, where it is resized. */
  readonly kept?: { readonly memory: readonly MemoryBlock[] } | undefined;
}
