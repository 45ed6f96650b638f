// KubeletPods: pods of the kubelet's files as pods on record. Pure.
import type { BookedMemory, MemoryBlock } from '../account/booked-memory.js';
import {
  type ContainerAssignment,
  JUST_PLACED,
  type PodAssignment,
  type PodBooking,
} from '../account/pod-assignment.js';
import { adoptedContainer } from '../adoption/adopted-pod.js';
import { CpuSet } from '../machine/cpu-set.js';
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
function withIsolation(containers: readonly ContainerAssignment[]): ContainerAssignment[] {
  return containers.map((container) => {
    const isShared = containers.some((other) => other !== container && other.cpus.intersects(container.cpus));
    return isShared ? { ...container, isolation: 'pod' } : container;
  });
}

export function podsOf(states: KubeletStates, { newOwner, now }: ImportFacts): PodAssignment[] {
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
      containers: booking ? withIsolation(containers) : containers,
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
export function bookedWith(booked: BookedMemory, { machineState }: MemoryManagerState): BookedMemory {
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
