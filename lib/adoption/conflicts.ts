// AdoptionConflicts: why a pod cannot have on record what it has elsewhere. Pure.
import type { Assignments } from '../account/assignments.js';
import { type BookedMemory, bookedOn } from '../account/booked-memory.js';
import { deviceKeysOf, kubeletDevices } from '../account/held-devices.js';
import { cpusOfKubeletPod, kubeletPodName } from '../account/kubelet-record.js';
import { bookingFlaw } from '../account/memory-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import { type CpuSnapshot, universe } from '../account/pools.js';
import { memoryTables, takenByKubelet } from '../decision/memory/memory-tables.js';
import { isMemoryType } from '../input/values/memory-types.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';

type Pods = readonly PodAssignment[];

/** Sentences that say why pods cannot have their CPUs here; empty if they can. */
export function cpuConflicts(state: Assignments, present: CpuSnapshot, pods: Pods): string[] {
  const managed = universe(state.settings, present);
  const holders = new Map<string, CpuSet>([
    ...state.pods.map((pod) => [`which grant ${pod.uid} holds`, cpusOf(pod)] as const),
    ...(state.kubelet?.pods ?? []).map(
      (pod) => [`which ${kubeletPodName(pod)} of the kubelet holds`, cpusOfKubeletPod(pod)] as const,
    ),
  ]);
  return pods.flatMap((pod) => {
    const cpus = cpusOf(pod);
    const clashes = [
      ['which are not online on this machine', cpus.difference(present.online)],
      ['which numalign does not manage', cpus.intersection(present.online).difference(managed)],
      ['which are reserved', cpus.intersection(state.settings.reservedSystemCPUs)],
      ...Array.from(holders, ([why, holderCpus]) => [why, cpus.intersection(holderCpus)] as const),
    ] as const;
    holders.set(`which pod ${pod.uid} also has`, cpus);
    return clashes
      .filter(([, set]) => !set.isEmpty)
      .map(([why, set]) => `pod ${pod.uid} has CPUs ${set}, ${why}`);
  });
}

/** The same for devices. */
export function deviceConflicts(state: Assignments, pods: Pods): string[] {
  const holders = new Map<string, string>();
  const note = (pod: PodAssignment, why: string) => {
    for (const key of deviceKeysOf(pod)) holders.set(key, why);
  };
  for (const key of kubeletDevices(state.kubelet)) holders.set(key, 'which the kubelet has assigned');
  for (const pod of state.pods) note(pod, `which grant ${pod.uid} holds`);
  return pods.flatMap((pod) => {
    const clashes = [...deviceKeysOf(pod)].flatMap((key) => {
      const why = holders.get(key);
      return why === undefined ? [] : [`pod ${pod.uid} has device ${key}, ${why}`];
    });
    note(pod, `which pod ${pod.uid} also has`);
    return clashes;
  });
}

/** The same for memory. `before`: what was booked without these pods. */
export function memoryConflicts(
  before: BookedMemory,
  state: Assignments,
  topology: Topology,
  pods: Pods,
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
  const kubeletMemory = takenByKubelet(state.kubelet, topology);
  return Object.entries(state.memory).flatMap(([node, types]) =>
    Object.keys(types).flatMap((type) => {
      const booked = bookedOn(state.memory, Number(node), type);
      const table = tables.find((each) => each.node === Number(node) && each.type === type);
      const allocatable = Math.max(
        0,
        (table?.allocatable ?? 0) - bookedOn(kubeletMemory, Number(node), type),
      );
      if (booked <= Math.max(allocatable, bookedOn(before, Number(node), type))) return [];
      return [`${booked} bytes of ${type} would be booked on NUMA node ${node}, which has ${allocatable}`];
    }),
  );
}
