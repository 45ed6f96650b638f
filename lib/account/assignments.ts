// Assignments: who holds what, as an immutable value. Pure: no clock, no files.
import { LayeredMap } from '../base/collections/layered-map.js';
import type { FeatureGates, KubeletVersion } from '../base/kubelet-features.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { type BookedMemory, NOTHING_BOOKED } from './booked-memory.js';
import type { KubeletRecord } from './kubelet-record.js';
import type { CpuIdentity, PodAssignment, UnknownFields } from './pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';
import type { QuietRecord } from './quiet/quiet-record.js';

/** Recorded once for the machine; see MachineOptions. */
export interface MachineSettings {
  /** null: every online CPU. */
  readonly managedCPUs: CpuSet | null;
  readonly reservedSystemCPUs: CpuSet;
  readonly strictCPUReservation: boolean;
  /** CPUs that are a pool of their own; null: those that the kernel isolates. */
  readonly isolatedCPUs: CpuSet | null;
  /** Bytes kept for the system by NUMA node and memory type. */
  readonly reservedMemory: BookedMemory;
  /**
   * Below it are the cgroups that numalign makes: a path in the hierarchy of cpusets. null: none
   * are used.
   */
  readonly cgroupRoot: string | null;
  /** The kubelet whose decisions are followed. */
  readonly kubeletVersion: KubeletVersion;
  readonly featureGates: FeatureGates;
  /** The state is of a simulated machine. */
  readonly simulated: boolean;
  readonly unknown: UnknownFields;
}

/**
 * The CPUs that the last grant of a name had, so that the next one of that name can have them
 * again.
 */
export interface NamedCpus {
  readonly name: string;
  readonly cpus: CpuSet;
}

export interface Assignments {
  readonly settings: MachineSettings;
  /** The machine's CPUs when the state was last written. */
  readonly cpus: readonly CpuIdentity[];
  readonly pods: readonly PodAssignment[];
  /** What the memory blocks of all pods take from each NUMA node. */
  readonly memory: BookedMemory;
  /** Of grants that have ended, the latest last. */
  readonly lastCpus: readonly NamedCpus[];
  /** What the kubelet has given out; null: nobody has recorded any. */
  readonly kubelet: KubeletRecord | null;
  /** Settings of the kernel that are changed for grants; null: none. */
  readonly quiet: QuietRecord | null;
  readonly unknown: UnknownFields;
}

export function emptyAssignments(settings: MachineSettings): Assignments {
  return {
    ...{ settings, cpus: [], pods: [], memory: NOTHING_BOOKED, lastCpus: [] },
    ...{ kubelet: null, quiet: null, unknown: {} },
  };
}

const podsByUid = oncePerPods<LayeredMap<string, PodAssignment>>(
  (pods) => LayeredMap.from(pods.map((pod) => [pod.uid, pod])),
  (earlier, changes) =>
    earlier.with([
      ...podsBefore(changes).map(({ uid }) => [uid, undefined] as const),
      ...podsAfter(changes).map((pod) => [pod.uid, pod] as const),
    ]),
);

export function findPod({ pods }: Pick<Assignments, 'pods'>, uid: string): PodAssignment | undefined {
  return podsByUid(pods).get(uid);
}

/**
 * Whether threads of a process may be on a pod's CPUs by right: it is its owner, or was and has not
 * left them yet.
 */
export function isHeldBy(
  { owner, formerOwner }: Pick<PodAssignment, 'owner' | 'formerOwner'>,
  uuid: string,
): boolean {
  return owner.uuid === uuid || formerOwner === uuid;
}
