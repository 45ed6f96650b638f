// Why what the kubelet has given out cannot be taken over. Pure.
import type { Assignments } from '../account/assignments.js';
import { type BookedMemory, bookedOn } from '../account/booked-memory.js';
import { cpusOfKubeletPod, kubeletPodName } from '../account/kubelet-record.js';
import { bookingFlaw } from '../account/memory-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import { universe } from '../account/pools.js';
import { NumalignError } from '../base/errors.js';
import { memoryTables, takenByKubelet } from '../decision/memory/memory-tables.js';
import { isMemoryType } from '../input/memory-types.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { KubeletStates } from './kubelet-states.js';

/** In words: why the CPUs of the kubelet's pods cannot be theirs here; none where they can. */
export function cpuConflicts(
  state: Assignments,
  topology: Topology,
  pods: readonly PodAssignment[],
  pool: CpuSet,
): string[] {
  const managed = universe(state.settings, { online: topology.cpus });
  const holders = new Map<string, CpuSet>([
    ...state.pods.map((pod) => [`grant ${pod.uid}`, cpusOf(pod)] as const),
    ...(state.kubelet?.pods ?? []).map(
      (pod) => [`${kubeletPodName(pod)} of the kubelet`, cpusOfKubeletPod(pod)] as const,
    ),
  ]);
  return pods.flatMap((pod) => {
    const cpus = cpusOf(pod);
    const clashes = [
      [cpus.difference(topology.cpus), 'which are not online on this machine'],
      [cpus.intersection(topology.cpus).difference(managed), 'which numalign does not manage'],
      [cpus.intersection(state.settings.reservedSystemCPUs), 'which are reserved'],
      [cpus.intersection(pool), "which are in the files' shared pool too"],
      ...Array.from(holders, ([holder, held]) => [cpus.intersection(held), `which ${holder} holds`] as const),
    ] as const;
    holders.set(`pod ${pod.uid} of the files`, cpus);
    return clashes
      .filter(([set]) => !set.isEmpty)
      .map(([set, why]) => `pod ${pod.uid} has CPUs ${set}, ${why}`);
  });
}

/** In words: what the files book for pods as a whole that their containers do not have. */
export function bookingConflicts(pods: readonly PodAssignment[], { cpu, memory }: KubeletStates): string[] {
  const known = new Set(pods.map(({ uid }) => uid));
  const booked = [...(cpu.podEntries?.keys() ?? []), ...(memory.podEntries?.keys() ?? [])];
  const lost = [...new Set(booked)].filter((uid) => !known.has(uid));
  return [
    ...lost.map((uid) => `pod ${uid} has CPUs or memory as a whole, and no container`),
    ...pods.flatMap(({ uid, booking, containers }) =>
      containers
        .filter(({ cpus }) => booking && !cpus.isSubsetOf(booking.cpus))
        .map(({ name }) => `container ${name} of pod ${uid} has CPUs that the pod as a whole does not have`),
    ),
  ];
}

/** The same of memory. `before`: what was booked without them. */
export function memoryConflicts(
  before: BookedMemory,
  state: Assignments,
  topology: Topology,
  pods: readonly PodAssignment[],
): string[] {
  const isSet = (nodes: readonly number[]) =>
    nodes.length > 0 &&
    nodes.every((node, i) => topology.numaNodes.includes(node) && (i === 0 || node > nodes[i - 1]!));
  const wrong = pods.flatMap(({ uid, booking, containers }) =>
    [...containers, ...(booking ? [booking] : [])]
      .flatMap(({ memory }) => memory)
      .filter(
        ({ nodes, type, bytes }) => !isSet(nodes) || !isMemoryType(type) || !Number.isSafeInteger(bytes),
      )
      .map(
        ({ nodes, type, bytes }) =>
          `pod ${uid} has ${bytes} bytes of ${type} on NUMA nodes ${nodes}, which cannot be`,
      ),
  );
  if (wrong.length > 0) return wrong;
  const flaw = bookingFlaw(state.memory, state.pods);
  if (flaw !== undefined) return [flaw];
  const tables = memoryTables(state, topology);
  const taken = takenByKubelet(state.kubelet, topology);
  return Object.entries(state.memory).flatMap(([node, types]) =>
    Object.keys(types).flatMap((type) => {
      const booked = bookedOn(state.memory, Number(node), type);
      const table = tables.find((each) => each.node === Number(node) && each.type === type);
      const allocatable = Math.max(0, (table?.allocatable ?? 0) - bookedOn(taken, Number(node), type));
      if (booked <= Math.max(allocatable, bookedOn(before, Number(node), type))) return [];
      return [`${booked} bytes of ${type} would be booked on NUMA node ${node}, which has ${allocatable}`];
    }),
  );
}

export function refuse(conflicts: readonly string[]): void {
  if (conflicts.length === 0) return;
  throw new NumalignError(
    'ERR_KUBELET_IMPORT',
    `nothing is taken over from the kubelet: ${conflicts.join('; ')}`,
    {
      value: conflicts,
      valid: 'pods whose CPUs and memory are free here',
    },
  );
}
