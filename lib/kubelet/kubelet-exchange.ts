// What the kubelet's state files say <-> assignments. Pure.
import { type Assignments, findPod } from '../account/assignments.js';
import { type BookedMemory, bookedOn, bookingFlaw, type MemoryBlock } from '../account/booked-memory.js';
import {
  type ContainerAssignment,
  JUST_PLACED,
  type OwnerRecord,
  type PodAssignment,
} from '../account/pod-assignment.js';
import { addPod } from '../account/pod-changes.js';
import { cpusOf, ISOLATED_OPTION } from '../account/pod-holdings.js';
import { isolatedPool, sharedPool, universe } from '../account/pools.js';
import { NumalignError } from '../base/errors.js';
import { memoryTables } from '../decision/memory-tables.js';
import { isMemoryType } from '../input/memory-types.js';
import { MILLI } from '../input/resource-amounts.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { KubeletStates } from './kubelet-states.js';
import type { KubeletMemoryBlock, MemoryManagerState } from './memory-manager-state.js';

// ---- from the kubelet

/** What the files do not know: who owns each pod, and since when. */
export interface ImportFacts {
  readonly newOwner: () => OwnerRecord;
  readonly now: Date;
  /** As of CpuSnapshot. */
  readonly isolated: CpuSet;
}

// Sizes that no machine has would lose their last digits.
function blockOf({ numaAffinity, type, size }: KubeletMemoryBlock): MemoryBlock {
  return { nodes: numaAffinity, type, bytes: Number(size) };
}

/**
 * A container as far as the files know it. Its request is what it has; whether it is an init
 * container, and which hint it was placed by, they do not say.
 */
function containerOf(name: string, cpus: CpuSet, memory: readonly MemoryBlock[]): ContainerAssignment {
  return {
    name,
    kind: 'app',
    started: true,
    request: {
      ...(cpus.isEmpty ? {} : { cpu: cpus.size * MILLI }),
      ...Object.fromEntries(memory.map(({ type, bytes }) => [type, bytes])),
    },
    cpus,
    held: CpuSet.EMPTY,
    hint: { nodes: null, preferred: false },
    memory,
    devices: {},
    reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
    unknown: {},
  };
}

function podsOf({ cpu, memory }: KubeletStates, { newOwner, now }: ImportFacts): PodAssignment[] {
  const uids = new Set([...cpu.entries.keys(), ...memory.entries.keys()]);
  const pods = Array.from(uids, (uid): PodAssignment => {
    const [cpus, blocks] = [cpu.entries.get(uid), memory.entries.get(uid)];
    const names = new Set([...(cpus?.keys() ?? []), ...(blocks?.keys() ?? [])]);
    return {
      uid,
      name: uid,
      containers: Array.from(names, (name) =>
        containerOf(name, cpus?.get(name) ?? CpuSet.EMPTY, (blocks?.get(name) ?? []).map(blockOf)),
      ),
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

/** What is booked once the memory of the files is booked too, on the nodes that they say. */
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

function cpuConflicts(
  state: Assignments,
  topology: Topology,
  pods: readonly PodAssignment[],
  pool: CpuSet,
): string[] {
  const managed = universe(state.settings, { online: topology.cpus });
  const holders = new Map(state.pods.map((pod) => [`grant ${pod.uid}`, cpusOf(pod)]));
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

function memoryConflicts(
  before: BookedMemory,
  state: Assignments,
  topology: Topology,
  pods: readonly PodAssignment[],
): string[] {
  const isSet = (nodes: readonly number[]) =>
    nodes.length > 0 &&
    nodes.every((node, i) => topology.numaNodes.includes(node) && (i === 0 || node > nodes[i - 1]!));
  const wrong = pods.flatMap(({ uid, containers }) =>
    containers
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
  return Object.entries(state.memory).flatMap(([node, types]) =>
    Object.keys(types).flatMap((type) => {
      const booked = bookedOn(state.memory, Number(node), type);
      const table = tables.find((each) => each.node === Number(node) && each.type === type);
      if (booked <= Math.max(table?.allocatable ?? 0, bookedOn(before, Number(node), type))) return [];
      return [
        `${booked} bytes of ${type} would be booked on NUMA node ${node}, which has ${table?.allocatable ?? 0}`,
      ];
    }),
  );
}

function refuse(conflicts: readonly string[]): void {
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

/**
 * The state with the pods of the kubelet's files, and which they are. What the files do not say is
 * as it is for a pod that nobody knows more of: named by its uid, running, persistent.
 * @throws ERR_POD_CONFLICT where a grant of a pod's uid is on record; ERR_KUBELET_IMPORT where what
 *   the files say contradicts itself, the machine, or what others hold: then nothing is taken over
 */
export function withKubeletPods(
  state: Assignments,
  topology: Topology,
  states: KubeletStates,
  facts: ImportFacts,
): { readonly next: Assignments; readonly pods: readonly PodAssignment[] } {
  const pods = podsOf(states, facts);
  const known = pods.find(({ uid }) => findPod(state, uid));
  if (known) {
    throw new NumalignError('ERR_POD_CONFLICT', `pod ${known.uid} is admitted already: release it first`, {
      value: known.uid,
      valid: 'uids that no grant has',
    });
  }
  refuse(cpuConflicts(state, topology, pods, states.cpu.defaultCpuSet));
  const booked = bookedWith(state.memory, states.memory);
  const present = { online: topology.cpus, isolated: facts.isolated };
  const isolated = isolatedPool(state.settings, present);
  const placed = pods.map((pod) => {
    const cpus = cpusOf(pod);
    return cpus.isEmpty || !cpus.isSubsetOf(isolated)
      ? pod
      : { ...pod, options: { [ISOLATED_OPTION]: true } };
  });
  const next = placed.reduce((all, pod) => addPod(all, pod, booked), state);
  refuse(memoryConflicts(state.memory, next, topology, pods));
  if (pods.length > 0 && sharedPool(next, present).isEmpty) {
    refuse(['no CPU would be left for the shared pool, where everything else runs']);
  }
  return { next, pods: placed };
}
