// What of a grant the kubelet has given to pods of its own since: it does not know of grants, and what
// it takes counts. Pure.
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

/** The kubelet has given held CPUs to pods of its own. */
export interface CpuTaken {
  readonly code: 'CPU_TAKEN';
  readonly message: string;
  readonly cpus: CpuSet;
  /** Namespace and name of the pods that have them, such as `default/web`. */
  readonly pods: readonly string[];
}

/**
 * The kubelet has given so much memory to pods of its own that less is left than is granted there.
 */
export interface MemoryTaken {
  readonly code: 'MEMORY_TAKEN';
  readonly message: string;
  /** The memory type. */
  readonly resource: string;
  /** Those that share the memory. */
  readonly nodes: readonly number[];
  /** What this grant has there, what all grants have, and what the kubelet leaves to them. */
  readonly bytes: number;
  readonly booked: number;
  readonly left: number;
  readonly pods: readonly string[];
}

/** The kubelet has given held devices to pods of its own. */
export interface DeviceTaken {
  readonly code: 'DEVICE_TAKEN';
  readonly message: string;
  readonly resource: string;
  readonly devices: readonly string[];
  readonly pods: readonly string[];
}

const NONE: readonly (CpuTaken | MemoryTaken | DeviceTaken)[] = [];

/** Of a grant on record, what the kubelet has taken. */
export function takenFlags(
  pod: PodAssignment,
  state: Assignments,
  topology: Topology,
): readonly (CpuTaken | MemoryTaken | DeviceTaken)[] {
  // Most machines have none.
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

const takenBy = (pods: readonly string[]) => `the kubelet has given to ${pods.join(', ')}`;

function cpusTaken(cpus: CpuSet, holders: readonly KubeletPod[]): CpuTaken[] {
  if (cpus.isEmpty) return [];
  const pods = namesOf(holders, (pod) => cpusOfKubeletPod(pod).intersects(cpus));
  const message = `${takenBy(pods)} ${cpusNamed(cpus)}`;
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
    // Where the machine itself has too little, that is another flag.
    if (booked <= left || booked > allocatable) return [];
    const pods = namesOf(holders, (each) =>
      memoryOfKubeletPod(each).some(
        (block) => block.type === type && block.nodes.some((id) => nodes.includes(id)),
      ),
    );
    const where = `NUMA node${nodes.length > 1 ? 's' : ''} ${NodeSet.from(nodes)}`;
    const message = `${takenBy(pods)} ${type} on ${where}: ${formatBytes(booked)} granted there, where ${formatBytes(left)} are left`;
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
    const message = `${takenBy(pods)} ${resource}: ${devices.join(', ')}`;
    return [
      Object.freeze({ code: 'DEVICE_TAKEN', message, resource, devices: Object.freeze(devices), pods }),
    ];
  });
}
