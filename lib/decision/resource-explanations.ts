// ResourceExplanations: what a rejected request asks of each resource, what is free, and who holds
// the rest. Pure.
import type { Assignments } from '../account/assignments.js';
import type { MemoryBlock } from '../account/booked-memory.js';
import {
  cpusOfKubeletPod,
  type KubeletPod,
  kubeletPodName,
  memoryOfKubeletPod,
} from '../account/kubelet-record.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf, devicesOf, memoryOf } from '../account/pod-holdings.js';
import { freeCpus, isolatedPool, universe } from '../account/pools.js';
import { amountFor } from '../input/pods/pod-request.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { formatBytes } from '../input/values/quantity.js';
import { type CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { HintFamily } from '../machine/hints.js';
import { candidates, cpuCount } from './cpus/cpu-choices.js';
import { everGrantable } from './cpus/cpu-limits.js';
import { availableDevices, countNear, deviceRequests } from './devices/device-draft.js';
import type { Draft } from './draft/draft.js';
import { bookedIn } from './draft/memory-draft.js';
import type { NodeAmount } from './hints/hint-provider.js';
import type { OfferedHints } from './hints/merge-hints.js';
import { memoryRequests } from './memory/memory-requests.js';
import { allocatableOn, memoryRow, memoryTables } from './memory/memory-tables.js';
import { nodesByTier } from './memory/memory-tiers.js';

/** A holder of what is missing: a grant, or a pod of the kubelet (`default/web of the kubelet`). */
export interface Holder {
  /** Empty for a pod whose uid the kubelet does not report. */
  readonly uid: string;
  /** The name of the grant or pod; `the pod itself` for earlier containers of the rejected pod. */
  readonly name: string;
  /**
   * The part of the resource that it holds, for people: a list of CPUs, bytes and their NUMA nodes,
   * or ids of devices.
   */
  readonly holds: string;
  /**
   * The pid of the owner process, in its own pid namespace; null for other owners and pods of the
   * kubelet.
   */
  readonly pid: number | null;
}

/** The part of one resource in an {@link Explanation}. */
export interface ResourceExplanation {
  /** `cpu`, a memory type such as `hugepages-2Mi`, or the name of a device or custom resource. */
  readonly resource: string;
  /** The custom provider's name; null for numalign itself. */
  readonly provider: string | null;
  /** CPUs, bytes or devices. */
  readonly asked: number;
  /** Empty if a custom provider does not report it. For devices, only nodes that have some. */
  readonly nodes: readonly NodeAmount[];
  /** The part reserved for the system, for people; null: nothing. */
  readonly reserved: string | null;
  /**
   * The isolated CPUs, granted or not, for people; null: there are none, or the resource is not
   * CPUs.
   */
  readonly isolated: string | null;
  /**
   * The part that is free but unusable, for people: CPUs closed to the process that asks, memory of
   * tiers that it does not name, or unhealthy devices; null: nothing.
   */
  readonly unusable: string | null;
  /** The hints that were offered. */
  readonly hints: HintFamily | null;
  /** The grants and pods of the kubelet that hold some of it; empty for a custom provider. */
  readonly holders: readonly Holder[];
}

/** What a rejection is about. */
export interface RejectedRequest {
  readonly draft: Draft;
  /** null: the whole pod. */
  readonly container: string | null;
  readonly offered: readonly OfferedHints[];
  /** The amounts that custom providers report for their resources. */
  readonly amounts: ReadonlyMap<OfferedHints, readonly NodeAmount[]>;
}

type HeldText = (pod: PodAssignment) => string;

type KubeletText = (pod: KubeletPod) => string;

// Grants first, then the kubelet's pods.
function holders({ pods, kubelet }: Assignments, heldBy: HeldText, byKubelet: KubeletText): Holder[] {
  const granted = pods.map((pod) => {
    const { uid, name, owner } = pod;
    return { uid, name, holds: heldBy(pod), pid: owner.pid };
  });
  const others = (kubelet?.pods ?? []).map((pod) => {
    const name = `${kubeletPodName(pod)} of the kubelet`;
    return { uid: pod.uid ?? '', name, holds: byKubelet(pod), pid: null };
  });
  return [...granted, ...others].filter(({ holds }) => holds !== '');
}

/** All grants and pods of the kubelet that hold exclusive CPUs. */
export const holdersOf = (state: Assignments): Holder[] =>
  holders(
    state,
    (each) => cpusOf(each).toString(),
    (each) => cpusOfKubeletPod(each).toString(),
  );

function containerOf({ pod }: Draft, name: string | null): ContainerRequest | undefined {
  return pod.containers.find((container) => container.name === name);
}

function listOrNull(cpus: CpuSet): string | null {
  return cpus.isEmpty ? null : cpus.toString();
}

function ownHints(offered: readonly OfferedHints[], name: string): HintFamily | null {
  return offered.find(({ provider, resource }) => provider === null && resource === name)?.hints ?? null;
}

export function cpuExplanation({ draft, container, offered }: RejectedRequest): ResourceExplanation {
  const { topology, present, pool, state, pod, allowed, taken } = draft;
  const asking = containerOf(draft, container);
  const asked = cpuCount(draft, asking);
  // For grants that hold siblings, the machine has one CPU per core.
  const { from } = candidates(draft, asked);
  const reserved = universe(state.settings, present).intersection(state.settings.reservedSystemCPUs);
  const possible = everGrantable(draft, asked);
  const free = freeCpus(state, present, pool).intersection(topology.cpus);
  const podItself = { uid: pod.uid ?? '', name: 'the pod itself', holds: taken.toString(), pid: null };
  return {
    resource: 'cpu',
    provider: null,
    asked,
    nodes: topology.nodes
      .filter(({ cpus }) => !cpus.isEmpty)
      .map(({ id, cpus }) => ({
        node: id,
        free: cpus.intersection(from).size,
        possible: cpus.intersection(possible).size,
      })),
    reserved: listOrNull(reserved),
    isolated: listOrNull(isolatedPool(state.settings, present)),
    // Without any, the machine has no cores of the kind.
    unusable: allowed.isEmpty ? null : listOrNull(free.difference(taken).difference(allowed)),
    hints: ownHints(offered, 'cpu'),
    holders: taken.isEmpty ? holdersOf(state) : [...holdersOf(state), podItself],
  };
}

// Nodes without CPUs and memory, of which a GPU may have many, say nothing.
function isAccepted({ topology, placement: { memoryTiers: tiers } }: Draft, id: number): boolean {
  const { cpus, memoryBytes, tier } = topology.nodes.find((node) => node.id === id)!;
  return (memoryBytes > 0 || !cpus.isEmpty) && (tiers === 'any' || tiers.includes(tier));
}

// Such as `1 GiB of cxl on NUMA node 2, 736 GiB of gpu on NUMA nodes 4-5`.
function otherTiersText({ topology, placement, state }: Draft, type: string): string | null {
  const { memoryTiers: tiers } = placement;
  const texts = [...nodesByTier(topology)].flatMap(([tier, nodes]) => {
    const bytes = nodes.reduce((sum, node) => sum + allocatableOn(node, type, state.settings), 0);
    if (tiers === 'any' || tiers.includes(tier) || bytes === 0) return [];
    const ids = NodeSet.from(nodes.map(({ id }) => id));
    return [`${formatBytes(bytes)} of ${tier} on NUMA node${ids.size > 1 ? 's' : ''} ${ids}`];
  });
  return texts.length > 0 ? texts.join(', ') : null;
}

export function memoryExplanations({ draft, container, offered }: RejectedRequest): ResourceExplanation[] {
  const { topology, state, memory } = draft;
  const tables = memoryTables({ ...state, memory: bookedIn(state, memory) }, topology);
  const text = ({ nodes, bytes }: { nodes: readonly number[]; bytes: number }) =>
    `${formatBytes(bytes)} of NUMA node${nodes.length > 1 ? 's' : ''} ${nodes.join(', ')}`;
  return memoryRequests(draft, containerOf(draft, container)).map(({ type: resource, bytes: asked }) => {
    const tablesOfType = tables.filter(({ type }) => type === resource);
    const blocksText = (blocks: readonly MemoryBlock[]) =>
      blocks
        .filter(({ type }) => type === resource)
        .map(text)
        .join(', ');
    const { free } = memoryRow(draft, resource);
    const accepted = tablesOfType.filter(({ node }) => isAccepted(draft, node));
    const reserved = tablesOfType
      .filter(({ systemReserved }) => systemReserved > 0)
      .map(({ node, systemReserved }) => text({ nodes: [node], bytes: systemReserved }));
    return {
      resource,
      provider: null,
      asked,
      isolated: null,
      unusable: otherTiersText(draft, resource),
      hints: ownHints(offered, resource),
      nodes: accepted.map(({ node, allocatable }) => {
        return { node, free: free[topology.numaNodes.indexOf(node)]!, possible: allocatable };
      }),
      reserved: reserved.length > 0 ? reserved.join(', ') : null,
      holders: holders(
        state,
        (pod) => blocksText(memoryOf(pod)),
        (pod) => blocksText(memoryOfKubeletPod(pod)),
      ),
    };
  });
}

export function deviceExplanations({ draft, container, offered }: RejectedRequest): ResourceExplanation[] {
  return deviceRequests(draft, containerOf(draft, container)).map(({ resource, count: asked }) => {
    const { name, devices } = resource;
    const available = availableDevices(draft, resource);
    const sick = devices.filter(({ healthy }) => !healthy).map(({ id }) => id);
    return {
      resource: name,
      provider: null,
      asked,
      reserved: null,
      hints: ownHints(offered, name),
      nodes: draft.topology.numaNodes
        .map((node) => ({ node, free: countNear(available, node), possible: countNear(devices, node) }))
        .filter(({ possible }) => possible > 0),
      isolated: null,
      unusable: sick.length > 0 ? sick.join(', ') : null,
      holders: holders(
        draft.state,
        (pod) => (devicesOf(pod)[name] ?? []).map(({ id }) => id).join(', '),
        ({ containers }) => containers.flatMap(({ devices }) => devices[name] ?? []).join(', '),
      ),
    };
  });
}

export function otherExplanations({
  draft,
  container,
  offered,
  amounts,
}: RejectedRequest): ResourceExplanation[] {
  const asking = containerOf(draft, container);
  return offered
    .filter(({ provider }) => provider !== null)
    .map((each) => ({
      ...each,
      asked: amountFor(draft.pod, asking, each.resource),
      nodes: amounts.get(each) ?? [],
      reserved: null,
      isolated: null,
      unusable: null,
      holders: [],
    }));
}
