// Progress: how far a decision has come. Pure.
import type { ContainerAssignment, PodBooking } from '../account/pod-assignment.js';
import { type CpuPool, cpusOf } from '../account/pod-holdings.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { NodeSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import { exclusiveCount } from './cpus/cpu-choices.js';
import { type CpuAllocation, cpusLeft, cpusTaken, keptCpus } from './cpus/cpu-manager.js';
import { type Draft, firstDraft, nextDraft, withKept } from './cpus/draft.js';
import { type DeviceAllocation, devicesLeft } from './devices/device-draft.js';
import type { OfferedHints } from './explanation.js';
import type { MergeResult } from './hints/merge-hints.js';
import type { MemoryDraft } from './memory/memory-draft.js';
import type { Question } from './question.js';

/** What was merged to one hint: for a container, or (null) for the whole pod. */
export interface Offer {
  readonly container: string | null;
  readonly offered: readonly OfferedHints[];
  readonly merged: MergeResult;
}

export interface Progress {
  readonly question: Question;
  readonly pool: CpuPool;
  /** As it is for the container at hand. */
  draft: Draft;
  /** By container, as far as it has come. */
  given: readonly Given[];
  offers: readonly Offer[];
  /** What is booked for the pod as a whole; null: its containers are given theirs one by one. */
  booking: PodBooking | null;
  /** The container at hand; undefined: the whole pod. */
  container: ContainerRequest | undefined;
  /** The NUMA nodes of its first init container that is aligned; undefined: any. */
  initNodes: NodeSet | undefined;
  /**
   * NUMA nodes are chosen over all resources together, of these or (undefined) of all. undefined: as
   * the kubelet chooses them.
   */
  joint: { readonly within: NodeSet | undefined } | undefined;
}

/** What a container was given near its hint, and what that leaves of memory. */
export interface Given {
  readonly container: ContainerRequest;
  readonly hint: TopologyHint;
  readonly cpus: CpuAllocation;
  readonly devices: DeviceAllocation;
  readonly memory: MemoryDraft;
  /** It shares its CPUs with other containers of the pod, if it has any. */
  readonly isShared: boolean;
}

const NOTHING_GIVEN: Progress['given'] = [];

export function begin(question: Question, pool: CpuPool): Progress {
  const { topology, present, state, request, resources, hugepages, within } = question;
  const { pod, placement, isForCaller } = request;
  const usable = isForCaller ? topology.allowed : topology.cpus;
  const allowed = within?.intersection(usable) ?? usable;
  const draft = firstDraft({
    ...{ topology, present, pool, state, pod, placement },
    ...{ allowed, resources, hugepages },
  });
  return {
    question,
    pool,
    draft: resizing(draft, question),
    given: NOTHING_GIVEN,
    // The caller of a plan gets this very list.
    offers: [],
    booking: null,
    container: undefined,
    initNodes: undefined,
    joint: undefined,
  };
}

// CPUs that are announced are settled; else what is given up is chosen before anything is taken.
function resizing(draft: Draft, { resized, request }: Question): Draft {
  if (!resized) return draft;
  const [now] = resized.containers as [ContainerAssignment];
  const count = exclusiveCount(request.pod, request.pod.containers[0]!, request.placement);
  const { cpus, held } = resized.upcoming ?? keptCpus(draft, now, count);
  return withKept(draft, { cpus, held, memory: now.memory, devices: now.devices }, cpusOf(resized));
}

/** The draft once one more container has been placed. */
export function draftAfter(draft: Draft, { container, cpus, devices, memory }: Given): Draft {
  return nextDraft(draft, cpusLeft(draft, container, cpus), devicesLeft(draft, container, devices), memory);
}

/** The memory of the machine with all containers. REQUIRES: they are placed. */
export const memoryOf = ({ given }: Progress): MemoryDraft => given.at(-1)!.memory;

/** The NUMA nodes of all that its containers have. REQUIRES: they are placed. */
export function nodesOf(progress: Progress): NodeSet {
  const { draft, given, question } = progress;
  const memory = memoryOf(progress).containers.flatMap(({ blocks }) => blocks.flatMap(({ nodes }) => nodes));
  const devices = given.flatMap((each) => Object.values(each.devices).flat());
  const near = NodeSet.from([...memory, ...devices.flatMap(({ nodes }) => nodes ?? [])]);
  return question.topology.nodesOf(cpusTaken(draft, given.at(-1)!.cpus)).union(near);
}

/** The NUMA nodes of what a container has. REQUIRES: all of them are placed. */
export function nodesOfContainer(progress: Progress, { container, cpus, devices }: Given): NodeSet {
  const blocks = memoryOf(progress).containers.find(({ name }) => name === container.name)?.blocks ?? [];
  const memory = NodeSet.from(blocks.flatMap(({ nodes }) => nodes));
  const near = progress.draft.topology.nodesOf(cpus.cpus.union(cpus.held)).union(memory);
  // A device that is near several nodes is near as soon as one of them is in.
  const far = Object.values(devices)
    .flat()
    .flatMap(({ nodes }) => (nodes?.some((node) => near.has(node)) ? [] : (nodes ?? []).slice(0, 1)));
  return near.union(NodeSet.from(far));
}
