// KubeletRecord: what the kubelet has given out, as a process of this machine keeps it on record
// beside the grants. Pure.
import { CpuSet } from '../machine/cpu-set.js';
import {
  type BookedMemory,
  bookMemory,
  type MemoryBlock,
  NOTHING_BOOKED,
  type TotalOn,
} from './booked-memory.js';
import type { OwnerRecord, UnknownFields } from './pod-assignment.js';

/** What a container of the kubelet's keeps from others. */
export interface KubeletContainer {
  readonly name: string;
  readonly cpus: CpuSet;
  readonly memory: readonly MemoryBlock[];
  /** Ids by resource. */
  readonly devices: Readonly<Record<string, readonly string[]>>;
}

/** A pod of the kubelet's. No two have the same namespace and name. */
export interface KubeletPod {
  /** null: the kubelet does not tell it, as in its PodResources API. */
  readonly uid: string | null;
  readonly namespace: string;
  readonly name: string;
  readonly containers: readonly KubeletContainer[];
}

export interface KubeletRecord {
  readonly pods: readonly KubeletPod[];
  /** The process that keeps the record: the lock of owners/<uuid> tells whether it lives. */
  readonly keeper: OwnerRecord;
  /** When this process began to keep it: wall-clock time in ISO 8601. */
  readonly since: string;
  /** When what the kubelet holds changed last. */
  readonly updatedAt: string;
  readonly unknown: UnknownFields;
}

/** As `default/web`. */
export const kubeletPodName = ({ namespace, name }: Pick<KubeletPod, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`;

export function cpusOfKubeletPod({ containers }: Pick<KubeletPod, 'containers'>): CpuSet {
  return containers.reduce((cpus, container) => cpus.union(container.cpus), CpuSet.EMPTY);
}

export const memoryOfKubeletPod = ({ containers }: Pick<KubeletPod, 'containers'>): readonly MemoryBlock[] =>
  containers.flatMap(({ memory }) => memory);

type Pods = Pick<KubeletRecord, 'pods'>;

// Of records that never change.
const cpusKnown = new WeakMap<Pods, CpuSet>();

/** All CPUs that the kubelet has given to containers alone. */
export function kubeletCpus(record: Pods | null): CpuSet {
  if (record === null) return CpuSet.EMPTY;
  let cpus = cpusKnown.get(record);
  if (!cpus) {
    cpus = record.pods.reduce((all, pod) => all.union(cpusOfKubeletPod(pod)), CpuSet.EMPTY);
    cpusKnown.set(record, cpus);
  }
  return cpus;
}

const memoryKnown = new WeakMap<Pods, { readonly totalOn: TotalOn; readonly booked: BookedMemory }>();

/**
 * What the kubelet's pods take from each NUMA node. How it divides a block among several nodes it
 * does not tell: as numalign does, ascending, each as far as it goes. The last node has what
 * the machine has not.
 */
export function kubeletMemory(record: Pods | null, totalOn: TotalOn): BookedMemory {
  if (record === null) return NOTHING_BOOKED;
  let known = memoryKnown.get(record);
  if (known?.totalOn !== totalOn) {
    known = { totalOn, booked: record.pods.flatMap(memoryOfKubeletPod).reduce(bookOn, NOTHING_BOOKED) };
    memoryKnown.set(record, known);
  }
  return known.booked;

  function bookOn(booked: BookedMemory, block: MemoryBlock): BookedMemory {
    const { nodes, type } = block;
    const freeOn = (node: number) =>
      node === nodes.at(-1) ? Number.POSITIVE_INFINITY : totalOn(node, type) - (booked[node]?.[type] ?? 0);
    return bookMemory(booked, block, freeOn);
  }
}
