// Place: hints, merge and allocation, for each container or for the pod as a whole. Pure, except for
// custom hint providers.
import type { PodAssignment } from '../account/pod-assignment.js';
import { withLast } from '../base/collections/lists.js';
import { Refusal } from '../base/refusal.js';
import { isStrict } from '../input/placement.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import type { NodeSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import { type Aligned, aligned, takeNear, type Wanted, wantedBy } from './alignment.js';
import { bookPod } from './booking.js';
import { checkLeftByHints } from './claims.js';
import { exclusiveCount } from './cpus/cpu-choices.js';
import { checkRoom, checkSharedPool, leavesNoPool, needsRoom, UnevenCores } from './cpus/cpu-limits.js';
import { allocateCpus, cpusTaken } from './cpus/cpu-manager.js';
import { allocateDevices } from './devices/device-allocation.js';
import { ownDevices } from './devices/device-draft.js';
import { isBookedWhole } from './draft/partition.js';
import { askToAllocate } from './hints/hint-provider.js';
import { nodesAhead, type Trial } from './joint/nodes-ahead.js';
import { allocateMemory } from './memory/memory-allocation.js';
import { memoryLeft } from './memory/memory-booking.js';
import { type ContainerAllocation, draftAfter, nodesOf, type Offer, type Progress } from './progress.js';
import { hintRequest, isJoint, type Question } from './question.js';

/**
 * Places all containers by `joint` of the progress. `isAhead`: places init containers with the whole
 * pod in view.
 * @throws Refusal
 */
export function placeOnce(progress: Progress, isAhead: boolean): void {
  const { pod, placement } = progress.question.request;
  if (isBookedWhole(pod, placement)) {
    checkLeftByHints(progress.draft);
    const wanted = wantedBy(progress.draft, undefined);
    bookPod(progress, wanted, aligned(progress, wanted));
    checkSharedPool(progress.draft);
    if (needsRoom(progress.draft)) checkRoom(progress.draft);
    return;
  }
  if (isAhead && looksAhead(progress.question))
    progress.initNodes = nodesAhead((nodes) => trial(progress, nodes));
  placeEach(progress);
}

function placeEach(progress: Progress): void {
  const { containers } = progress.question.request.pod;
  const forPod = hintForAll(progress);
  let last: ContainerAllocation | undefined;
  // By index: iterating over a frozen array allocates for each member.
  for (let i = 0; i < containers.length; i++) {
    const container = containers[i]!;
    if (last) progress.draft = draftAfter(progress.draft, last);
    progress.container = container;
    const wanted = wantedBy(progress.draft, container);
    const near = aligned(progress, wanted, forPod);
    try {
      last = allocate(progress, container, wanted, near);
    } catch (error) {
      throw memoryRefusal(progress, near.hint, error) ?? error;
    }
    progress.allocations = withLast(progress.allocations, last);
  }
  progress.container = undefined;
  // Only these checks need the draft after the last container.
  const { draft } = progress;
  if (leavesNoPool(draft, cpusTaken(draft, last!.cpus))) checkSharedPool(draftAfter(draft, last!));
  if (needsRoom(draft)) checkRoom(draftAfter(draft, last!));
}

// The hint that all containers have; undefined: each has its own.
function hintForAll(progress: Progress): TopologyHint | undefined {
  const { question, draft } = progress;
  if (question.resized) return resizedHint(progress, question.resized);
  const isOne = draft.placement.scope === 'pod';
  return isOne ? aligned(progress, wantedBy(draft, undefined, false)).hint : undefined;
}

// Custom providers cannot allocate for a trial.
function looksAhead({ request: { pod, placement }, providers }: Question): boolean {
  const { scope, topologyPolicy } = placement;
  if (pod.containers[0]!.kind === 'app') return false;
  return scope === 'container' && topologyPolicy !== 'none' && providers.length === 0;
}

function trial(begun: Progress, initNodes: NodeSet | undefined): Trial {
  const progress = { ...begun, initNodes };
  let nodes: NodeSet | undefined;
  try {
    placeEach(progress);
    nodes = nodesOf(progress);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  const { containers } = progress.question.request.pod;
  const isOfInit = ({ container }: Offer) =>
    containers.find(({ name }) => name === container)!.kind !== 'app';
  const offered = progress.offers.filter(isOfInit).flatMap((offer) => offer.offered);
  return { nodes, offered: offered.map(({ hints }) => hints) };
}

// Only growth may go to other nodes.
function resizedHint(progress: Progress, { containers: [now] }: PodAssignment): TopologyHint {
  [progress.container] = progress.question.request.pod.containers;
  const { requests } = progress.container!;
  const isGrowing = Object.entries(requests).some(
    ([resource, amount]) => amount > (now!.request[resource] ?? 0),
  );
  return isGrowing ? aligned(progress, wantedBy(progress.draft, progress.container, false)).hint : now!.hint;
}

function allocate(
  progress: Progress,
  container: ContainerRequest,
  wanted: Wanted,
  near: Aligned,
): ContainerAllocation {
  const { providers } = progress.question;
  const { draft } = progress;
  const { hint } = near;
  const beside = isJoint(progress.question) ? near.nodes : null;
  const own = ownDevices(draft, container, wanted.devices);
  const devices =
    draft.kept?.devices ?? allocateDevices(draft, container, own, { nodes: hint.nodes, beside });
  const cpus = allocateCpus(draft, wanted.fit, near);
  const blocks = allocateMemory(draft, wanted.memory, hint, near.memory);
  for (const provider of providers) askToAllocate(provider, hintRequest(progress), hint);
  const memory = memoryLeft(draft, container, blocks);
  return { container, hint, cpus, devices, memory, isShared: false };
}

/**
 * The refusal over memory, if the kubelet would give one first. If cores of uneven sizes do not add
 * up, the kubelet splits cores and then fails over missing memory. Releasing CPUs would not help,
 * so numalign gives the same reason.
 */
function memoryRefusal(progress: Progress, hint: TopologyHint, error: unknown): Refusal | undefined {
  const { pod, placement } = progress.question.request;
  const { containers } = pod;
  // A strict policy rejects such a pod by its hints.
  if (!(error instanceof UnevenCores) || isStrict(placement)) return undefined;
  let { draft } = progress;
  let left = draft.topology.wholeCores(draft.free).size;
  for (let i = containers.indexOf(progress.container!); i < containers.length; i++) {
    const container = containers[i]!;
    // It may fail over cores before memory.
    left -= exclusiveCount(pod, container, placement);
    if (left < 0) return undefined;
    try {
      const wanted = { ...wantedBy(draft, container), fit: undefined };
      const { memory: choice } = takeNear(draft, container, wanted, hint);
      const blocks = allocateMemory(draft, wanted.memory, hint, choice);
      draft = { ...draft, memory: memoryLeft(draft, container, blocks) };
    } catch (missing) {
      if (missing instanceof Refusal) return missing;
      throw missing;
    }
  }
  return undefined;
}
