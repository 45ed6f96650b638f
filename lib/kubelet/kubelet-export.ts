// KubeletExport: a state as the kubelet's state files.
import type { Assignments } from '../account/assignments.js';
import { type MemoryBlock, memoryBlocks } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import type { ContainerAssignment, PodAssignment, PodBooking } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import { allCpus, secondPlace } from '../account/pod-holdings.js';
import { type CpuSnapshot, exclusiveCpus, freeCpus, sharedPool } from '../account/pools.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import { type MemoryTable, memoryTables } from '../decision/memory/memory-tables.js';
import type { Placement } from '../input/placement.js';
import { MEMORY } from '../input/values/memory-types.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { CpuManagerState } from './cpu-manager-state.js';
import { formatKubeletFiles, type KubeletFiles, type KubeletStates } from './kubelet-states.js';
import type { KubeletMemoryTable, KubeletNumaNode, MemoryManagerState } from './memory-manager-state.js';

/** The policies that the files are written for. */
export interface KubeletPolicies {
  readonly cpuPolicy: 'none' | 'static';
  readonly memoryPolicy: 'None' | 'Static';
}

/**
 * All CPUs that belong to a container. The kubelet cannot express CPUs that are held but not used,
 * or that a container is about to get.
 */
function exclusiveOf(pod: PodAssignment, { name, cpus, held, reusable }: ContainerAssignment): CpuSet {
  const all = cpus.union(held).union(reusable.cpus);
  return pod.upcoming?.container === name ? all.union(allCpus(secondPlace(pod))) : all;
}

/**
 * Values by pod uid and container name, without containers for which `pick` returns nothing, and
 * without pods that have only such containers.
 */
function byContainer<T>(
  { pods }: Assignments,
  pick: (container: ContainerAssignment, pod: PodAssignment) => T | undefined,
): Map<string, Map<string, T>> {
  const entries = pods.map((pod) => {
    const picks = pod.containers.map((container) => [container.name, pick(container, pod)] as const);
    return [pod.uid, new Map(picks.filter((entry): entry is [string, T] => entry[1] !== undefined))] as const;
  });
  return new Map(entries.filter(([, containers]) => containers.size > 0));
}

/**
 * What is booked for pods as a whole, by uid. Empty without the gate, since the kubelet would not
 * write it.
 */
function ofWholePods<T>(
  { settings, pods }: Assignments,
  pick: (booking: PodBooking) => T | undefined,
): { readonly podEntries?: Map<string, T> } {
  if (!settings.featureGates.PodLevelResourceManagers) return {};
  const podEntries = new Map<string, T>();
  for (const { uid, booking } of pods) {
    const pickedEntry = booking ? pick(booking) : undefined;
    if (pickedEntry !== undefined) podEntries.set(uid, pickedEntry);
  }
  return { podEntries };
}

const kubeletBlock = ({ nodes, type, bytes }: MemoryBlock) => ({
  numaAffinity: nodes,
  type,
  size: BigInt(bytes),
});

// The kubelet does not know isolated CPUs: free ones are in its shared pool.
function cpuManagerState(
  state: Assignments,
  present: CpuSnapshot,
  policy: KubeletPolicies['cpuPolicy'],
): CpuManagerState {
  const podEntries = ofWholePods(state, ({ cpus, held }) => {
    const cpuSet = cpus.union(held);
    return cpuSet.isEmpty ? undefined : { cpuSet };
  });
  if (policy === 'none' && exclusiveCpus(state).isEmpty) {
    return { policyName: 'none', defaultCpuSet: CpuSet.EMPTY, entries: new Map(), ...podEntries };
  }
  const entries = byContainer(state, (container, pod) => {
    const cpus = exclusiveOf(pod, container);
    return cpus.isEmpty ? undefined : cpus;
  });
  return {
    policyName: 'static',
    defaultCpuSet: sharedPool(state, present).union(freeCpus(state, present, 'isolated')),
    entries,
    ...podEntries,
  };
}

function numaNode(tables: readonly MemoryTable[], blocks: readonly MemoryBlock[]): KubeletNumaNode {
  const { node, group } = tables[0]!;
  const all = tables.reduce((sum, { total }) => sum + total, 0);
  const rows = tables.map(({ type, total, systemReserved, allocatable, reserved, free }) => {
    const sizes = { total: type === MEMORY ? all : total, systemReserved, allocatable, reserved, free };
    const exact = Object.entries(sizes).map(([name, bytes]) => [name, BigInt(bytes)]);
    return [type, Object.fromEntries(exact) as KubeletMemoryTable] as const;
  });
  return {
    numberOfAssignments: blocks.filter(({ nodes }) => nodes.includes(node)).length,
    memoryMap: new Map(rows),
    cells: group,
  };
}

function memoryManagerState(
  state: Assignments,
  topology: Topology,
  policy: KubeletPolicies['memoryPolicy'],
): MemoryManagerState {
  const blocks = memoryBlocks(state.pods);
  const podEntries = ofWholePods(state, ({ memory }) => {
    const memoryBlocks = memory.map(kubeletBlock);
    return memoryBlocks.length === 0 ? undefined : { memoryBlocks };
  });
  if (policy === 'None' && blocks.length === 0) {
    return { policyName: 'None', machineState: new Map(), entries: new Map(), ...podEntries };
  }
  // The kubelet's own pods have no entry in these files.
  const tables = memoryTables({ ...state, kubelet: null }, topology);
  const machineState = new Map(
    topology.nodes.map(({ id }) => [
      id,
      numaNode(
        tables.filter(({ node }) => node === id),
        blocks,
      ),
    ]),
  );
  const entries = byContainer(state, ({ memory }) => {
    return memory.length === 0 ? undefined : memory.map(kubeletBlock);
  });
  return { policyName: 'Static', machineState, entries, ...podEntries };
}

/**
 * The kubelet's files for a state; `isolated` like in CpuSnapshot. The policies `none` and `None`
 * are kept only if nothing is assigned.
 */
function toKubelet(
  state: Assignments,
  topology: Topology,
  isolated: CpuSet,
  policies: KubeletPolicies,
): KubeletStates {
  return {
    cpu: cpuManagerState(state, { online: topology.cpus, isolated }, policies.cpuPolicy),
    memory: memoryManagerState(state, topology, policies.memoryPolicy),
  };
}

/** The state as the kubelet's files, without the grants of dead owners. */
export function exportKubelet(
  host: ReadOnlyHost,
  { cpuPolicy, memoryPolicy }: Placement,
): KubeletFiles & Record<keyof KubeletFiles, string> {
  const state = recordedState(host);
  const dead = host.ledger.owners.deadPods(state.pods).map((pod) => pod.uid);
  const policies = {
    cpuPolicy: cpuPolicy === 'none' ? cpuPolicy : ('static' as const),
    memoryPolicy: memoryPolicy === 'None' ? memoryPolicy : ('Static' as const),
  };
  return formatKubeletFiles(
    toKubelet(
      removePods(state, new Set(dead)),
      host.topology,
      cpusNow(host.topology, state.pods).isolated,
      policies,
    ),
    state.settings,
  );
}
