// Flags for what the kubelet took from a grant for its own pods. The kubelet does not know grants,
// so its allocations override theirs. Pure.
import type { Assignments } from '../../account/assignments.js';
import { bookedOn } from '../../account/booked-memory.js';
import { deviceKey, kubeletDevicesOf } from '../../account/held-devices.js';
import {
  cpusOfKubeletPod,
  type KubeletPod,
  kubeletCpus,
  kubeletPodName,
  memoryOfKubeletPod,
} from '../../account/kubelet-record.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf, devicesOf, memoryOf } from '../../account/pod-holdings.js';
import { cpusNamed } from '../../base/text/cpus-named.js';
import { formatBytes } from '../../input/values/quantity.js';
import { type CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import { allocatableOn, isMemoryKnown, takenByKubelet } from '../memory/memory-tables.js';

/** The kubelet gave held CPUs to its own pods. */
export interface CpuTaken {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'CPU_TAKEN';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The CPUs of the grant that pods of the kubelet have too. */
  readonly cpus: CpuSet;
  /** Namespace and name of those pods, for example `default/web`. */
  readonly pods: readonly string[];
}

/** The kubelet gave memory to its own pods and left less than is granted on the nodes. */
export interface MemoryTaken {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'MEMORY_TAKEN';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The memory type. */
  readonly resource: string;
  /** The nodes that share the memory. */
  readonly nodes: readonly number[];
  /** Bytes that this grant has booked on these nodes. */
  readonly bytes: number;
  /** Bytes that all grants have booked there. */
  readonly booked: number;
  /** Bytes there that the kubelet leaves for grants; fewer than `booked`. */
  readonly left: number;
  /** Namespace and name of the pods with memory there, for example `default/web`. */
  readonly pods: readonly string[];
}

/** The kubelet gave held devices to its own pods. */
export interface DeviceTaken {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'DEVICE_TAKEN';
  /** One line for people; the wording may change. */
  readonly message: string;
  /** The name of the resource, such as `example.com/nic`. */
  readonly resource: string;
  /** Ids of the devices that pods of the kubelet have too. */
  readonly devices: readonly string[];
  /** Namespace and name of those pods, for example `default/web`. */
  readonly pods: readonly string[];
}

const NONE: readonly (CpuTaken | MemoryTaken | DeviceTaken)[] = [];

/** The flags of a grant on record for what the kubelet took. */
export function takenFlags(
  pod: PodAssignment,
  state: Assignments,
  topology: Topology,
): readonly (CpuTaken | MemoryTaken | DeviceTaken)[] {
  // Most machines have no kubelet.
  if (state.kubelet === null) return NONE;
  const { pods } = state.kubelet;
  return [
    ...cpusTaken(cpusOf(pod).intersection(kubeletCpus(state.kubelet)), pods),
    ...memoryTaken(pod, state, pods, topology),
    ...devicesTaken(pod, pods),
  ];
}

const namesOf = (pods: readonly KubeletPod[], isOne: (pod: KubeletPod) => boolean): readonly string[] =>
  Object.freeze(pods.filter(isOne).map(kubeletPodName));

const gaveText = (what: string, pods: readonly string[]) => `the kubelet gave ${what} to ${pods.join(', ')}`;

function cpusTaken(cpus: CpuSet, holders: readonly KubeletPod[]): CpuTaken[] {
  if (cpus.isEmpty) return [];
  const pods = namesOf(holders, (pod) => cpusOfKubeletPod(pod).intersects(cpus));
  const message = gaveText(cpusNamed(cpus), pods);
  return [Object.freeze({ code: 'CPU_TAKEN', message, cpus, pods })];
}

function memoryTaken(
  pod: PodAssignment,
  { memory, settings, kubelet }: Assignments,
  holders: readonly KubeletPod[],
  topology: Topology,
): MemoryTaken[] {
  if (!isMemoryKnown(topology)) return [];
  const taken = takenByKubelet(kubelet, topology);
  return memoryOf(pod).flatMap(({ nodes, type, bytes }): MemoryTaken[] => {
    const sum = (of: (node: number) => number) => nodes.reduce((all, node) => all + of(node), 0);
    const there = topology.nodes.filter(({ id }) => nodes.includes(id));
    const allocatable = there.reduce((all, node) => all + allocatableOn(node, type, settings), 0);
    const booked = sum((node) => bookedOn(memory, node, type));
    const left = Math.max(0, allocatable - sum((node) => bookedOn(taken, node, type)));
    // If the machine itself has too little, MEMORY_GONE says so.
    if (booked <= left || booked > allocatable) return [];
    const pods = namesOf(holders, (each) =>
      memoryOfKubeletPod(each).some(
        (block) => block.type === type && block.nodes.some((id) => nodes.includes(id)),
      ),
    );
    const where = `NUMA node${nodes.length > 1 ? 's' : ''} ${NodeSet.from(nodes)}`;
    const message = `${gaveText(`${type} on ${where}`, pods)}: ${formatBytes(booked)} granted there, but only ${formatBytes(left)} left`;
    return [
      Object.freeze({ code: 'MEMORY_TAKEN', message, resource: type, nodes, bytes, booked, left, pods }),
    ];
  });
}

function devicesTaken(pod: PodAssignment, holders: readonly KubeletPod[]): DeviceTaken[] {
  return Object.entries(devicesOf(pod)).flatMap(([resource, held]): DeviceTaken[] => {
    const has = (of: KubeletPod, id: string) => kubeletDevicesOf(of).includes(deviceKey(resource, id));
    const devices = held.map(({ id }) => id).filter((id) => holders.some((each) => has(each, id)));
    if (devices.length === 0) return [];
    const pods = namesOf(holders, (each) => devices.some((id) => has(each, id)));
    const message = gaveText(`${resource} (${devices.join(', ')})`, pods);
    return [
      Object.freeze({ code: 'DEVICE_TAKEN', message, resource, devices: Object.freeze(devices), pods }),
    ];
  });
}
