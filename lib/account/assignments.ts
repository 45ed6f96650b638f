// Assignments: what every pod holds, as an immutable value. Pure: no clock, no files.
import { LayeredMap } from '../base/collections/layered-map.js';
import type { FeatureGates, KubeletVersion } from '../base/kubelet-features.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { type BookedMemory, NOTHING_BOOKED } from './booked-memory.js';
import type { KubeletRecord } from './kubelet-record.js';
import type { CpuIdentity, PodAssignment, QuietPart, UnknownFields } from './pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from './pod-list-changes.js';

/** The machine's settings, recorded once; see MachineOptions. */
export interface MachineSettings {
  /** null: every online CPU. */
  readonly managedCPUs: CpuSet | null;
  readonly reservedSystemCPUs: CpuSet;
  readonly strictCPUReservation: boolean;
  /** The CPUs of the isolated pool; null: those that the kernel isolates. */
  readonly isolatedCPUs: CpuSet | null;
  /** Bytes reserved for the system by NUMA node and memory type. */
  readonly reservedMemory: BookedMemory;
  /**
   * The parent of numalign's cgroups: a path in the hierarchy of cpusets. null: numalign uses no
   * cgroups.
   */
  readonly cgroupRoot: string | null;
  /** The kubelet version whose decisions numalign follows. */
  readonly kubeletVersion: KubeletVersion;
  readonly featureGates: FeatureGates;
  /** True if the state belongs to a simulated machine. */
  readonly simulated: boolean;
  readonly unknown: UnknownFields;
}

/**
 * The CPUs of the last grant with a name, so that the next grant with that name can have them
 * again.
 */
export interface NamedCpus {
  readonly name: string;
  readonly cpus: CpuSet;
}

/**
 * A kernel setting that numalign has changed, or is about to. It is on record before it is written,
 * so that it can be restored after any crash.
 */
export interface QuietSetting {
  readonly part: QuietPart;
  /** The file, or another name of the setting. */
  readonly path: string;
  /** Tells the object behind the path from a later one with the same path; null: nothing does. */
  readonly identity: string | null;
  /** The value before numalign changed it. */
  readonly original: string;
  /**
   * Values that numalign wrote, the latest first. If the setting has another value, another program
   * changed it.
   */
  readonly written: readonly string[];
  /** The kernel's error for the latest value; null: none. */
  readonly refusal: string | null;
  /** True if no grant needs it any more, and the process that should restore it could not. */
  readonly isLeftover: boolean;
}

/** All changed settings. */
export interface QuietRecord {
  readonly settings: readonly QuietSetting[];
  readonly unknown: UnknownFields;
}

export interface Assignments {
  readonly settings: MachineSettings;
  /** The machine's CPUs when the state was last written. */
  readonly cpus: readonly CpuIdentity[];
  readonly pods: readonly PodAssignment[];
  /** The memory that all pods' blocks take from each NUMA node. */
  readonly memory: BookedMemory;
  /** The CPUs of ended grants, the latest last. */
  readonly lastCpus: readonly NamedCpus[];
  /** What the kubelet has given out; null if no process records it. */
  readonly kubelet: KubeletRecord | null;
  /** Kernel settings that numalign changed for grants; null: none. */
  readonly quiet: QuietRecord | null;
  readonly unknown: UnknownFields;
}

export function emptyAssignments(settings: MachineSettings): Assignments {
  const empty = { cpus: [], pods: [], memory: NOTHING_BOOKED, lastCpus: [], kubelet: null, quiet: null };
  return { settings, ...empty, unknown: {} };
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
  // The latest one is looked up most.
  const last = pods.at(-1);
  return last?.uid === uid ? last : podsByUid(pods).get(uid);
}

/**
 * True if a process's threads may be on a pod's CPUs: the process owns the pod, or it was the owner
 * and has not left yet.
 */
export function isHeldBy(
  { owner, formerOwner }: Pick<PodAssignment, 'owner' | 'formerOwner'>,
  uuid: string,
): boolean {
  return owner.uuid === uuid || formerOwner === uuid;
}
