// KubeletPods: pods of the kubelet's files as pods on record. Pure.
import { type Assignments, findPod } from '../account/assignments.js';
import type { BookedMemory, MemoryBlock } from '../account/booked-memory.js';
import {
  type ContainerAssignment,
  JUST_PLACED,
  type PodAssignment,
  type PodBooking,
} from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import { adoptedContainer } from '../adoption/adopted-pod.js';
import { withAdopted } from '../adoption/adopted-state.js';
import { NumalignError } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { ImportFacts, KubeletStates } from './kubelet-states.js';
import type { KubeletMemoryBlock, MemoryManagerState } from './memory-manager-state.js';

// Only sizes that no machine has would lose digits.
function blockOf({ numaAffinity, type, size }: KubeletMemoryBlock): MemoryBlock {
  return { nodes: numaAffinity, type, bytes: Number(size) };
}

// A container as the files know it: they do not say whether it is an init container.
function containerOf(name: string, cpus: CpuSet, memory: readonly MemoryBlock[]): ContainerAssignment {
  const holding = { cpus, memory, devices: {}, asks: false };
  return adoptedContainer({ name, kind: 'app', requests: {} }, holding);
}

// What is booked for a pod as a whole.
function bookingOf(uid: string, { cpu, memory }: KubeletStates): PodBooking | null {
  const cpus = cpu.podEntries?.get(uid)?.cpuSet ?? CpuSet.EMPTY;
  const blocks = (memory.podEntries?.get(uid)?.memoryBlocks ?? []).map(blockOf);
  return cpus.isEmpty && blocks.length === 0 ? null : { cpus, held: CpuSet.EMPTY, memory: blocks };
}

// The files do not say which containers of a pod that is booked as a whole share CPUs. Containers
// whose CPUs overlap do.
function withSharing(containers: readonly ContainerAssignment[]): ContainerAssignment[] {
  return containers.map((container) => {
    const isShared = containers.some((other) => other !== container && other.cpus.intersects(container.cpus));
    return isShared ? { ...container, isolation: 'pod' } : container;
  });
}

function podsOf(states: KubeletStates, { newOwner, now }: ImportFacts): PodAssignment[] {
  const { cpu, memory } = states;
  const uids = new Set([...cpu.entries.keys(), ...memory.entries.keys()]);
  const pods = Array.from(uids, (uid): PodAssignment => {
    const [cpus, blocks] = [cpu.entries.get(uid), memory.entries.get(uid)];
    const names = new Set([...(cpus?.keys() ?? []), ...(blocks?.keys() ?? [])]);
    const booking = bookingOf(uid, states);
    const containers = Array.from(names, (name) =>
      containerOf(name, cpus?.get(name) ?? CpuSet.EMPTY, (blocks?.get(name) ?? []).map(blockOf)),
    );
    return {
      uid,
      name: uid,
      containers: booking ? withSharing(containers) : containers,
      booking,
      policy: 'none',
      scope: 'container',
      options: {},
      owner: newOwner(),
      ...JUST_PLACED,
      admittedAt: now.toISOString(),
      unknown: {},
    };
  });
  return pods.filter(({ containers }) => containers.length > 0);
}

/** The booked memory, together with the memory of the files on the nodes that they name. */
function bookedWith(booked: BookedMemory, { machineState }: MemoryManagerState): BookedMemory {
  const sums: Record<number, Record<string, number>> = {};
  const add = (node: number, type: string, bytes: number) => {
    if (bytes > 0) sums[node] = { ...sums[node], [type]: bytes + (sums[node]?.[type] ?? 0) };
  };
  for (const [node, types] of Object.entries(booked)) {
    for (const [type, bytes] of Object.entries(types)) add(Number(node), type, bytes);
  }
  for (const [node, { memoryMap }] of machineState) {
    for (const [type, { reserved }] of memoryMap) add(node, type, Number(reserved));
  }
  return sums;
}

/**
 * The state with the pods of the kubelet's files, and these pods. What the files do not say has
 * defaults: each pod is named by its uid, running and persistent.
 * @throws ERR_POD_CONFLICT if a grant with a pod's uid is on record; ERR_KUBELET_IMPORT if the
 *   files contradict themselves, the machine, or what others hold: then nothing is imported
 */
export function withKubeletPods(
  state: Assignments,
  topology: Topology,
  states: KubeletStates,
  facts: ImportFacts,
): { readonly next: Assignments; readonly pods: readonly PodAssignment[] } {
  const pods = podsOf(states, facts);
  const conflict = pods.find(({ uid }) => findPod(state, uid));
  if (conflict) {
    throw new NumalignError('ERR_POD_CONFLICT', `pod ${conflict.uid} is admitted already: release it first`, {
      value: conflict.uid,
      valid: 'uids that no grant has',
    });
  }
  const booked = bookedWith(state.memory, states.memory);
  const { conflicts, ...adopted } = withAdopted(state, pods, booked, {
    topology,
    present: facts.present,
  });
  refuse([...bookingConflicts(pods, states), ...poolConflicts(pods, states), ...conflicts]);
  return adopted;
}

/** Sentences about CPUs of pods that are also in the files' shared pool. */
function poolConflicts(pods: readonly PodAssignment[], { cpu }: KubeletStates): string[] {
  return pods.flatMap((pod) => {
    const cpus = cpusOf(pod).intersection(cpu.defaultCpuSet);
    return cpus.isEmpty ? [] : [`pod ${pod.uid} has CPUs ${cpus}, which are in the files' shared pool too`];
  });
}

/** Sentences about what the files book for pods as a whole, but their containers do not have. */
function bookingConflicts(pods: readonly PodAssignment[], { cpu, memory }: KubeletStates): string[] {
  const uids = new Set(pods.map(({ uid }) => uid));
  const booked = [...(cpu.podEntries?.keys() ?? []), ...(memory.podEntries?.keys() ?? [])];
  const withoutContainers = [...new Set(booked)].filter((uid) => !uids.has(uid));
  return [
    ...withoutContainers.map((uid) => `pod ${uid} has CPUs or memory as a whole, and no container`),
    ...pods.flatMap(({ uid, booking, containers }) =>
      containers
        .filter(({ cpus }) => booking && !cpus.isSubsetOf(booking.cpus))
        .map(({ name }) => `container ${name} of pod ${uid} has CPUs that the pod as a whole does not have`),
    ),
  ];
}

function refuse(conflicts: readonly string[]): void {
  if (conflicts.length === 0) return;
  throw new NumalignError(
    'ERR_KUBELET_IMPORT',
    `nothing is imported from the kubelet: ${conflicts.join('; ')}`,
    {
      value: conflicts,
      valid: 'pods whose CPUs and memory are free here',
    },
  );
}
