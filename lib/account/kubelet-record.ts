// KubeletRecord: what the kubelet has given out. A process of this machine keeps it on record
// beside the grants. Pure.
import { oncePer, oncePerLast } from '../base/collections/once-per.js';
import { CpuSet } from '../machine/cpu-set.js';
import {
  type BookedMemory,
  bookMemory,
  type MemoryBlock,
  NOTHING_BOOKED,
  type TotalOn,
} from './booked-memory.js';
import type { OwnerRecord, UnknownFields } from './pod-assignment.js';

/** What a container of the kubelet holds exclusively. */
export interface KubeletContainer {
  /** Name of the container; unique in its pod. */
  readonly name: string;
  /** Its exclusive CPUs; empty in the shared pool of the kubelet. */
  readonly cpus: CpuSet;
  /** Its memory and hugepages by type and NUMA nodes; empty if the kubelet pins none. */
  readonly memory: readonly MemoryBlock[];
  /** Ids by resource. */
  readonly devices: Readonly<Record<string, readonly string[]>>;
}

/** A pod of the kubelet. Namespace and name are unique. */
export interface KubeletPod {
  /** null if the kubelet does not report it, as in its PodResources API. */
  readonly uid: string | null;
  /** Kubernetes namespace of the pod. */
  readonly namespace: string;
  /** Name of the pod within its namespace. */
  readonly name: string;
  /** The containers that hold exclusive resources. */
  readonly containers: readonly KubeletContainer[];
}

export interface KubeletRecord {
  readonly pods: readonly KubeletPod[];
  /** The process that keeps the record; the lock of owners/<uuid> shows whether it lives. */
  readonly keeper: OwnerRecord;
  /** When this process began to keep it: wall-clock time in ISO 8601. */
  readonly since: string;
  /** When the kubelet's holdings changed last. */
  readonly updatedAt: string;
  readonly unknown: UnknownFields;
}

/** For example `default/web`. */
export const kubeletPodName = ({ namespace, name }: Pick<KubeletPod, 'namespace' | 'name'>): string =>
  `${namespace}/${name}`;

export function cpusOfKubeletPod({ containers }: Pick<KubeletPod, 'containers'>): CpuSet {
  return containers.reduce((cpus, container) => cpus.union(container.cpus), CpuSet.EMPTY);
}

export const memoryOfKubeletPod = ({ containers }: Pick<KubeletPod, 'containers'>): readonly MemoryBlock[] =>
  containers.flatMap(({ memory }) => memory);

type Pods = Pick<KubeletRecord, 'pods'>;

const cpusOfRecord = oncePer(({ pods }: Pods) =>
  pods.reduce((all, pod) => all.union(cpusOfKubeletPod(pod)), CpuSet.EMPTY),
);

/** All CPUs that the kubelet has given to containers exclusively. */
export const kubeletCpus = (record: Pods | null): CpuSet =>
  record === null ? CpuSet.EMPTY : cpusOfRecord(record);

/**
 * What the kubelet's pods take from each NUMA node. The kubelet does not report how it splits a
 * block over nodes. This splits it like numalign: ascending, as much as each node has. The last
 * node gets the rest, even beyond its memory.
 */
export const kubeletMemory = oncePerLast(({ pods }: Pods, totalOn: TotalOn): BookedMemory => {
  const bookOn = (booked: BookedMemory, block: MemoryBlock) => {
    const { nodes, type } = block;
    const freeOn = (node: number) =>
      node === nodes.at(-1) ? Number.POSITIVE_INFINITY : totalOn(node, type) - (booked[node]?.[type] ?? 0);
    return bookMemory(booked, block, freeOn);
  };
  return pods.flatMap(memoryOfKubeletPod).reduce(bookOn, NOTHING_BOOKED);
});
