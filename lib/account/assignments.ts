// Assignments: who holds what, as an immutable value, and the steps that change it. Pure: no clock,
// no files.
import type { CpuSet } from '../machine/cpu-set.js';
import { PCI_ADDRESS } from '../machine/pci-address.js';
import { type BookedMemory, NOTHING_BOOKED, releaseMemory } from './booked-memory.js';
import {
  type ContainerAssignment,
  type CpuIdentity,
  type DeviceAssignment,
  oncePerPods,
  type PodAssignment,
  presentCpus,
  type UnknownFields,
} from './pod-assignment.js';

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
  readonly unknown: UnknownFields;
}

export function emptyAssignments(settings: MachineSettings): Assignments {
  return { settings, cpus: [], pods: [], memory: NOTHING_BOOKED, lastCpus: [], unknown: {} };
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

/**
 * What tells devices apart: the address of a PCI device whatever the resource is called, else the
 * id and its resource.
 */
export function deviceKey(resource: string, id: string): string {
  return PCI_ADDRESS.test(id) ? id : `${resource} ${id}`;
}

/** The {@link deviceKey}s of devices by resource. */
export function deviceKeys(devices: Readonly<Record<string, readonly DeviceAssignment[]>>): string[] {
  const keys: string[] = [];
  for (const resource of Object.keys(devices))
    for (const { id } of devices[resource]!) keys.push(deviceKey(resource, id));
  return keys;
}

/** The {@link deviceKey}s of all devices that somebody holds. */
export function heldDevices({ pods }: Pick<Assignments, 'pods'>): ReadonlySet<string> {
  return devicesOfPods(pods);
}

const devicesOfPods = oncePerPods((pods) => {
  const held = new Set<string>();
  for (const { containers } of pods) {
    for (const { devices } of containers) for (const key of deviceKeys(devices)) held.add(key);
  }
  return held;
});

function withoutMemory(booked: BookedMemory, containers: readonly ContainerAssignment[]): BookedMemory {
  return containers.flatMap(({ memory }) => memory).reduce(releaseMemory, booked);
}

/** The state with one more pod, and the memory that is booked with it. */
export function addPod(state: Assignments, pod: PodAssignment, memory: BookedMemory): Assignments {
  return { ...state, pods: [...state.pods, pod], memory };
}

/** The state of a machine that was started anew: settings outlive a boot, grants do not. */
export function withoutPods(state: Assignments): Assignments {
  return { ...state, pods: [], memory: NOTHING_BOOKED };
}

/**
 * The state less some pods; what they had is free, and their CPUs are remembered by their names.
 */
export function removePods(state: Assignments, uids: ReadonlySet<string>): Assignments {
  if (uids.size === 0) return state;
  const isGone = ({ uid }: PodAssignment) => uids.has(uid);
  const gone = state.pods.filter(isGone);
  return {
    ...state,
    pods: state.pods.filter((pod) => !isGone(pod)),
    memory: withoutMemory(
      state.memory,
      gone.flatMap(({ containers }) => containers),
    ),
    lastCpus: gone.reduce(rememberCpus, state.lastCpus),
  };
}

// Names that are remembered; the oldest is forgotten first.
const MOST_NAMES = 64;

function rememberCpus(last: readonly NamedCpus[], pod: PodAssignment): readonly NamedCpus[] {
  const { uid, name } = pod;
  const cpus = presentCpus(pod);
  // Nobody comes again under a name that was made up for one grant.
  if (name === uid || cpus.isEmpty) return last;
  return [...last.filter((each) => each.name !== name), { name, cpus }].slice(-MOST_NAMES);
}

/** The state with one pod as it is now; `memory`: what is booked with it. */
export function replacePod(
  state: Assignments,
  pod: PodAssignment,
  memory: BookedMemory = state.memory,
): Assignments {
  return { ...state, pods: state.pods.map((each) => (each.uid === pod.uid ? pod : each)), memory };
}

/**
 * A container has started, and with it every one before: what init containers before it have had of
 * memory is free for other pods. CPUs and devices stay with the pod, as in the kubelet.
 */
export function startContainer(state: Assignments, pod: PodAssignment, name: string): Assignments {
  const at = pod.containers.findIndex((container) => container.name === name);
  const hasEnded = ({ kind }: ContainerAssignment, i: number) => kind === 'init' && i < at;
  const containers = pod.containers.map((container, i) => {
    const started = container.started || i <= at;
    if (!hasEnded(container, i)) return started === container.started ? container : { ...container, started };
    return { ...container, started, memory: [], reusable: { ...container.reusable, memory: [] } };
  });
  return replacePod(
    state,
    { ...pod, containers },
    withoutMemory(state.memory, pod.containers.filter(hasEnded)),
  );
}

export function findPod(state: Assignments, uid: string): PodAssignment | undefined {
  return state.pods.find((pod) => pod.uid === uid);
}
