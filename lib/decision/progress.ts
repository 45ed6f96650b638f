// Progress: the state of a running decision. Pure.
import type { ContainerAssignment, PodBooking } from '../account/pod-assignment.js';
import { type CpuPool, cpusOf } from '../account/pod-holdings.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { NodeSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import { exclusiveCount } from './cpus/cpu-choices.js';
import { type CpuAllocation, cpusLeft, cpusTaken, keptCpus } from './cpus/cpu-manager.js';
import { type DeviceAllocation, devicesLeft } from './devices/device-draft.js';
import { type Draft, firstDraft, nextDraft, withKept } from './draft/draft.js';
import type { MemoryDraft } from './draft/memory-draft.js';
import type { MergeResult, OfferedHints } from './hints/merge-hints.js';
import type { ContainerNodes } from './joint/score.js';
import type { Question } from './question.js';

/** The hints merged for a container, or for the whole pod (null). */
export interface Offer {
  /** The name of the container; null for the whole pod. */
  readonly container: string | null;
  /** The hints of each resource that the container or pod asks for. */
  readonly offered: readonly OfferedHints[];
  /** What the policy made of them. */
  readonly merged: MergeResult;
}

export interface Progress {
  readonly question: Question;
  readonly pool: CpuPool;
  /** The draft for the current container. */
  draft: Draft;
  /** The containers placed so far. */
  allocations: readonly ContainerAllocation[];
  offers: readonly Offer[];
  /** Booked for the pod as a whole; null if its containers are booked one by one. */
  booking: PodBooking | null;
  /** The current container; undefined: the whole pod. */
  container: ContainerRequest | undefined;
  /** The NUMA nodes for the first aligned init container; undefined: any. */
  initNodes: NodeSet | undefined;
  /**
   * Set if NUMA nodes are chosen for all resources together, from these nodes or (undefined) from
   * all; undefined: as the kubelet chooses.
   */
  joint: { readonly within: NodeSet | undefined } | undefined;
}

/** What a container got near its hint, and the memory left after it. */
export interface ContainerAllocation {
  readonly container: ContainerRequest;
  readonly hint: TopologyHint;
  readonly cpus: CpuAllocation;
  readonly devices: DeviceAllocation;
  readonly memory: MemoryDraft;
  /** True if the container shares any CPUs it has with others of the pod. */
  readonly isShared: boolean;
}

const NO_ALLOCATIONS: Progress['allocations'] = [];

export function begin(question: Question, pool: CpuPool): Progress {
  const { topology, request, within } = question;
  const { pod, isForCaller } = request;
  const { memoryTiers = request.placement.memoryTiers } = question;
  const isPart = memoryTiers !== request.placement.memoryTiers;
  const placement = isPart ? { ...request.placement, memoryTiers } : request.placement;
  const usable = isForCaller ? topology.allowed : topology.cpus;
  const allowed = within?.intersection(usable) ?? usable;
  return {
    question,
    pool,
    draft: resizing(firstDraft(question, { pool, pod, placement, allowed }), question),
    allocations: NO_ALLOCATIONS,
    // A new list, because the caller of a plan gets it.
    offers: [],
    booking: null,
    container: undefined,
    initNodes: undefined,
    joint: undefined,
  };
}

// Announced CPUs are settled. Otherwise, choose what the grant gives up before taking anything.
function resizing(draft: Draft, { resized, request }: Question): Draft {
  if (!resized) return draft;
  const [now] = resized.containers as [ContainerAssignment];
  const count = exclusiveCount(request.pod, request.pod.containers[0]!, request.placement);
  const { cpus, held } = resized.upcoming ?? keptCpus(draft, now, count);
  return withKept(draft, { cpus, held, memory: now.memory, devices: now.devices }, cpusOf(resized));
}

/** The draft after one more container is placed. */
export function draftAfter(draft: Draft, { container, cpus, devices, memory }: ContainerAllocation): Draft {
  return nextDraft(draft, cpusLeft(draft, container, cpus), devicesLeft(draft, container, devices), memory);
}

/** The memory of the machine after all containers. REQUIRES: all are placed. */
export const memoryOf = ({ allocations }: Progress): MemoryDraft => allocations.at(-1)!.memory;

/** The NUMA nodes of everything that the containers have. REQUIRES: all are placed. */
export function nodesOf(progress: Progress): NodeSet {
  const { draft, allocations, question } = progress;
  const memory = memoryOf(progress).containers.flatMap(({ blocks }) => blocks.flatMap(({ nodes }) => nodes));
  const devices = allocations.flatMap((each) => Object.values(each.devices).flat());
  const near = NodeSet.from([...memory, ...devices.flatMap(({ nodes }) => nodes ?? [])]);
  return question.topology.nodesOf(cpusTaken(draft, allocations.at(-1)!.cpus)).union(near);
}

/** REQUIRES: all containers are placed. */
export function nodesOfContainer(
  progress: Progress,
  { container, cpus, devices }: ContainerAllocation,
): ContainerNodes {
  const blocks = memoryOf(progress).containers.find(({ name }) => name === container.name)?.blocks ?? [];
  const memory = NodeSet.from(blocks.flatMap(({ nodes }) => nodes));
  const near = progress.draft.topology.nodesOf(cpus.cpus.union(cpus.held)).union(memory);
  // A device near several nodes counts as near if the container has one of them.
  const far = Object.values(devices)
    .flat()
    .flatMap(({ nodes }) => (nodes?.some((node) => near.has(node)) ? [] : (nodes ?? []).slice(0, 1)));
  return { all: near.union(NodeSet.from(far)), cpusAndMemory: near };
}
