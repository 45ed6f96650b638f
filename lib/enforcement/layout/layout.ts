// Layout: which groups grants have below the cgroup root, what these may use, and whether the root
// is a partition. Computed from records alone.
// Without a partition, a container's group has the container's CPUs, and the shared group has the
// shared pool. The group's memory nodes are those of the memory that is booked for the container,
// else they are left alone.
// With a partition, the root has exactly the exclusive CPUs, the kernel keeps everyone else off
// them, and there is no shared group. A container's group is a leaf: the kernel makes no partition
// from all CPUs of a group whose processes are deeper.
import type { Assignments } from '../../account/assignments.js';
import { cpusOfSome } from '../../account/cpus-of-pods.js';
import { LEVELS } from '../../account/levels.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { hasParts, memoryOf, nodesOf, runningCpus } from '../../account/pod-holdings.js';
import { podsThat } from '../../account/pod-list-changes.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { refits } from './transition.js';

/** The group of the shared pool, below the root. */
export const SHARED = 'shared';
/** The group of a pod with several containers for processes that run on the CPUs of all of them. */
export const ALL_CONTAINERS = '.all';

/** The container whose group a process enters; default: all of them. */
export function containerOrAll(
  { containers, booking }: Pick<PodAssignment, 'containers' | 'booking'>,
  container?: string,
): string {
  const isSingle = containers.length === 1 && !booking;
  return container ?? (isSingle ? containers[0]!.name : ALL_CONTAINERS);
}

/** The group of a grant for one of its containers, or for {@link ALL_CONTAINERS}. */
export interface LayoutGroup {
  readonly pod: PodAssignment;
  /** The path below the root, as CpusetHierarchy.group() takes it. */
  readonly name: string;
  readonly cpus: CpuSet;
  /** Where its memory comes from; empty: left alone. */
  readonly mems: NodeSet;
  /** True if its memory may come from all nodes again, because what was booked is given back. */
  readonly isUnbound: boolean;
  /** True if it is a partition within the root's, and exists before any process is in it. */
  readonly isolatesCpus: boolean;
}

export interface Layout {
  /** The groups that exist or may be made; only isolated ones must exist. */
  readonly groups: readonly LayoutGroup[];
  /** The CPUs of the root's partition; empty: no partition. */
  readonly partition: CpuSet;
}

export const groupName = (uid: string, container: string) => `${uid}/${container}`;

/** The uid of the grant with the group of this name; undefined for any other group. */
export function uidOf(name: string): string | undefined {
  const end = name.lastIndexOf('/');
  return end < 0 ? undefined : name.slice(0, end);
}

/** The container that the group of a grant is for. */
export const containerOf = (name: string) => name.slice(name.lastIndexOf('/') + 1);

/** Whether a grant's CPUs are in the root partition. */
export function isPartitioned({ enforcement: { level } }: Pick<PodAssignment, 'enforcement'>): boolean {
  return LEVELS[level].inPartition;
}

/** The grants in the root partition. */
export const podsInPartition = podsThat(isPartitioned);

const podsInGroups = podsThat(({ enforcement }) => enforcement.target !== null);

/**
 * The groups that a grant may have. The groups of containers can be isolated. The parts of a grant
 * belong to one process, which is in one group.
 */
export function groupsOf(pod: PodAssignment): readonly LayoutGroup[] {
  const isolatesCpus = LEVELS[pod.enforcement.level].isolatesCpus;
  const isOne = hasParts(pod);
  const containers = isOne ? [] : pod.containers.map(({ name, cpus }) => ({ name, cpus, isolatesCpus }));
  const all = { name: ALL_CONTAINERS, cpus: runningCpus(pod), isolatesCpus: isolatesCpus && isOne };
  return [...containers, all]
    .filter(({ cpus }) => !cpus.isEmpty)
    .map(({ name, ...group }) => ({
      pod,
      ...group,
      name: groupName(pod.uid, name),
      mems: memoryNodesOf(pod, name),
      isUnbound: false,
    }));
}

/** The memory nodes of the group of a container, or of {@link ALL_CONTAINERS}; empty: any. */
export function memoryNodesOf(pod: PodAssignment, container: string): NodeSet {
  if (container === ALL_CONTAINERS) return nodesOf(memoryOf(pod));
  return nodesOf(pod.containers.flatMap(({ name, memory }) => (name === container ? memory : [])));
}

/** The layout while all of these states hold, with the groups of the last one. */
export function layoutOf(states: readonly Assignments[]): Layout {
  const last = states.at(-1)!;
  // A grant that is about to change its CPUs keeps the earlier ones until the change is done.
  const former = new Map(
    states.flatMap((state) => refits(state, last)).map(({ pod, earlier }) => [pod, earlier]),
  );
  const during = (group: LayoutGroup) => {
    const isOne = group.pod.containers.length === 1 || hasParts(group.pod);
    const formerPod = isOne ? former.get(group.pod) : undefined;
    if (!formerPod) return group;
    const isUnbound = group.mems.isEmpty && !memoryNodesOf(formerPod, ALL_CONTAINERS).isEmpty;
    return { ...group, cpus: group.cpus.union(runningCpus(formerPod)), isUnbound };
  };
  const inPartition = states.flatMap(({ pods }) => podsInPartition(pods));
  return {
    groups: podsInGroups(last.pods).flatMap(groupsOf).map(during),
    partition: cpusOfSome(inPartition),
  };
}
