// Place: hints, merge, allocate, for each container or for the whole pod. Pure, but for what custom
// hint providers do.
import type { Assignments } from '../account/assignments.js';
import {
  type ContainerAssignment,
  JUST_PLACED,
  type OwnerRecord,
  type PodAssignment,
} from '../account/pod-assignment.js';
import { type CpuPool, cpusOf, ISOLATED_OPTION } from '../account/pod-holdings.js';
import type { CpuSnapshot } from '../account/pools.js';
import { withLast } from '../base/collections/lists.js';
import { Refusal } from '../base/refusal.js';
import { placementOptions } from '../input/placement.js';
import { amountFor, type PodRequest } from '../input/pod-request.js';
import type { AdmissionRequest } from '../input/request.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import { CpuSet } from '../machine/cpu-set.js';
import { ANY_NODES, type HintFamily, type TopologyHint } from '../machine/hints.js';
import type { Topology } from '../machine/topology.js';
import { exclusiveCount } from './cpu-choices.js';
import { checkSharedPool, leavesNoPool, UnevenCores } from './cpu-limits.js';
import { allocateCpus, type CpuAllocation, cpuHints, cpusLeft, cpusTaken, keptCpus } from './cpu-manager.js';
import {
  allocateDevices,
  type DeviceAllocation,
  type DeviceRequest,
  deviceHints,
  deviceRequests,
  devicesLeft,
} from './device-manager.js';
import type { DeviceResources } from './device-resources.js';
import { type Draft, firstDraft, type MemoryDraft, nextDraft, withKept } from './draft.js';
import type { OfferedHints } from './explanation.js';
import {
  askForHints,
  askToAllocate,
  askToRelease,
  type HintProvider,
  type HintRequest,
} from './hints/hint-provider.js';
import { type Hints, type MergeResult, mergeOffered } from './hints/merge-hints.js';
import {
  allocateMemory,
  type MemoryRequests,
  memoryHints,
  memoryLeft,
  memoryRequests,
} from './memory-manager.js';

/** When what is only planned is admitted. */
export const NEVER = '1970-01-01T00:00:00.000Z';

/** What a decision looks at: all of it is input, nothing is read from the machine. */
export interface Question {
  readonly topology: Topology;
  readonly present: CpuSnapshot;
  readonly state: Assignments;
  readonly request: AdmissionRequest;
  readonly resources: DeviceResources;
  readonly providers: readonly HintProvider[];
  readonly owner: OwnerRecord;
  readonly uid: string;
  /** By which custom providers know the pod while weaker policies are tried. */
  readonly trialUid: string;
  /** In ISO 8601. */
  readonly now: string;
  readonly dryRun: boolean;
  /** The only CPUs to choose from; undefined: all that are free. */
  readonly within?: CpuSet;
  /** The pod whose only container is resized to what is asked for; it is not in `state`. */
  readonly resized?: PodAssignment;
}

/** What was merged to one hint: for a container, or (null) for the whole pod. */
export interface Offer {
  readonly container: string | null;
  readonly offered: readonly OfferedHints[];
  readonly merged: MergeResult;
}

// How far a decision has come.
export interface Progress {
  readonly question: Question;
  readonly pool: CpuPool;
  /** As it is for the container at hand. */
  draft: Draft;
  /** By container, as far as it has come. */
  given: readonly Given[];
  offers: readonly Offer[];
  /** The container at hand; undefined: the whole pod. */
  container: ContainerRequest | undefined;
}

/** What a container was given near its hint, and what that leaves of memory. */
interface Given {
  readonly container: ContainerRequest;
  readonly hint: TopologyHint;
  readonly cpus: CpuAllocation;
  readonly devices: DeviceAllocation;
  readonly memory: MemoryDraft;
}

/** What is asked of the managers for a container, or for the whole pod. */
interface Requests {
  readonly devices: readonly DeviceRequest[];
  readonly memory: MemoryRequests;
}

const NOTHING_GIVEN: Progress['given'] = [];

export function begin(question: Question, pool: CpuPool): Progress {
  const { topology, present, state, request, resources, within } = question;
  const { pod, placement, isForCaller } = request;
  const usable = isForCaller ? topology.allowed : topology.cpus;
  const allowed = within?.intersection(usable) ?? usable;
  const draft = firstDraft({ topology, present, pool, state, pod, placement, allowed, resources });
  return {
    question,
    pool,
    draft: resizing(draft, question),
    given: NOTHING_GIVEN,
    // The caller of a plan gets this very list.
    offers: [],
    container: undefined,
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

export function place(progress: Progress): void {
  const { pod, placement } = progress.question.request;
  const forPod = progress.question.resized
    ? resizedHint(progress, progress.question.resized)
    : placement.scope === 'pod'
      ? admittedHint(progress, requestsFor(progress.draft, undefined))
      : undefined;
  // By index: to iterate over a list that is frozen makes an object for each member.
  const { containers } = pod;
  for (let i = 0; i < containers.length; i++) {
    const container = containers[i]!;
    const last = progress.given.at(-1);
    if (last) progress.draft = draftAfter(progress.draft, last);
    progress.container = container;
    const requests = requestsFor(progress.draft, container);
    const hint = forPod ?? admittedHint(progress, requests);
    try {
      progress.given = withLast(progress.given, allocate(progress, container, requests, hint));
    } catch (error) {
      throw memoryRefusal(progress, hint, error) ?? error;
    }
  }
  progress.container = undefined;
  // What the last container leaves matters for nothing else.
  const { draft } = progress;
  const last = progress.given.at(-1)!;
  if (leavesNoPool(draft, cpusTaken(draft, last.cpus))) checkSharedPool(draftAfter(draft, last));
}

function requestsFor(draft: Draft, container: ContainerRequest | undefined): Requests {
  return { devices: deviceRequests(draft, container), memory: memoryRequests(draft, container) };
}

function draftAfter(draft: Draft, { container, cpus, devices, memory }: Given): Draft {
  return nextDraft(draft, cpusLeft(draft, container, cpus), devicesLeft(draft, container, devices), memory);
}

// Only growth can be where it should not.
function resizedHint(progress: Progress, { containers: [now] }: PodAssignment): TopologyHint {
  [progress.container] = progress.question.request.pod.containers;
  const { requests } = progress.container!;
  const isGrowing = Object.entries(requests).some(
    ([resource, amount]) => amount > (now!.request[resource] ?? 0),
  );
  return isGrowing ? admittedHint(progress, requestsFor(progress.draft, progress.container)) : now!.hint;
}

/** The merged hint for the container at hand, or for the pod. @throws ERR_TOPOLOGY_AFFINITY */
function admittedHint(progress: Progress, requests: Requests): TopologyHint {
  const { topology, request } = progress.question;
  const { topologyPolicy, preferClosest } = request.placement;
  if (topologyPolicy === 'none') return ANY_NODES;
  const asked = askedFor(progress, requests);
  const hints = new Array<Hints>(asked.length);
  for (let i = 0; i < asked.length; i++) hints[i] = asked[i]!.hints;
  const { merged, families } = mergeOffered(hints, {
    numaNodes: topology.numaNodes,
    policy: topologyPolicy,
    distances: preferClosest ? topology.distances : undefined,
  });
  progress.offers = withLast(progress.offers, {
    container: progress.container?.name ?? null,
    offered: offeredHints(asked, families),
    merged,
  });
  if (merged.admitted) return merged.hint;
  const message = `the resources cannot be aligned as ${topologyPolicy} asks`;
  throw new Refusal('TopologyAffinityError', 'ERR_TOPOLOGY_AFFINITY', message);
}

/** A provider that is asked for hints: of memory several resources, which share them. */
interface Asked {
  readonly provider: string | null;
  readonly resource: string;
  readonly others: readonly string[];
  readonly hints: Hints;
}

const NO_OTHERS: readonly string[] = [];

// In the kubelet's order, and custom providers behind.
function askedFor(progress: Progress, { devices, memory }: Requests): readonly Asked[] {
  const { topology, providers } = progress.question;
  const { draft, container } = progress;
  const cpu = cpuHints(draft, container);
  const memoryQuestion = memoryHints(draft, memory);
  const asked = new Array<Asked>(devices.length + (cpu ? 1 : 0) + (memoryQuestion ? 1 : 0));
  for (let i = 0; i < devices.length; i++) {
    const resource = devices[i]!.resource.name;
    asked[i] = { provider: null, resource, others: NO_OTHERS, hints: deviceHints(draft, devices[i]!) };
  }
  let at = devices.length;
  if (cpu) asked[at++] = { provider: null, resource: 'cpu', others: NO_OTHERS, hints: cpu };
  if (memoryQuestion) {
    const others = memory.length === 1 ? NO_OTHERS : memory.slice(1).map(({ type }) => type);
    asked[at++] = { provider: null, resource: memory[0]!.type, others, hints: memoryQuestion };
  }
  for (const provider of providers) {
    const offered = askForHints(provider, hintRequest(progress), topology.numaNodes);
    for (const resource of Object.keys(offered))
      asked.push({ provider: provider.name, resource, others: NO_OTHERS, hints: offered[resource]! });
  }
  return asked;
}

// Each type of memory is a resource.
function offeredHints(asked: readonly Asked[], families: readonly HintFamily[]): readonly OfferedHints[] {
  const offered = new Array<OfferedHints>(asked.length);
  let next = 0;
  for (let i = 0; i < asked.length; i++) {
    const { provider, resource, others } = asked[i]!;
    const hints = families[i]!;
    offered[next++] = { provider, resource, hints };
    for (const other of others) offered[next++] = { provider, resource: other, hints };
  }
  return offered;
}

function allocate(
  progress: Progress,
  container: ContainerRequest,
  requests: Requests,
  hint: TopologyHint,
): Given {
  const { providers } = progress.question;
  const { draft } = progress;
  const devices = draft.kept?.devices ?? allocateDevices(draft, container, requests.devices, hint);
  const cpus = allocateCpus(draft, container, hint);
  const blocks = allocateMemory(draft, requests.memory, hint);
  for (const provider of providers) askToAllocate(provider, hintRequest(progress), hint);
  return { container, hint, cpus, devices, memory: memoryLeft(draft, container, blocks) };
}

/**
 * Where cores of uneven sizes do not add up, the kubelet hands out parts of them, and the pod fails
 * over memory that is nowhere: no release of CPUs would help it, and so that is the reason here too.
 */
function memoryRefusal(progress: Progress, hint: TopologyHint, error: unknown): Refusal | undefined {
  const { pod, placement } = progress.question.request;
  const { containers } = pod;
  const { topologyPolicy } = placement;
  if (!(error instanceof UnevenCores)) return undefined;
  // The others reject such a pod by its hints.
  if (topologyPolicy !== 'none' && topologyPolicy !== 'best-effort') return undefined;
  let { draft } = progress;
  let left = draft.topology.wholeCores(draft.free).size;
  for (let i = containers.indexOf(progress.container!); i < containers.length; i++) {
    const container = containers[i]!;
    // It may fail over cores before that.
    left -= exclusiveCount(pod, container, placement);
    if (left < 0) return undefined;
    try {
      const blocks = allocateMemory(draft, memoryRequests(draft, container), hint);
      draft = { ...draft, memory: memoryLeft(draft, container, blocks) };
    } catch (missing) {
      if (missing instanceof Refusal) return missing;
      throw missing;
    }
  }
  return undefined;
}

export function hintRequest({ question, container }: Progress): HintRequest {
  const { request, dryRun } = question;
  return Object.freeze({
    pod: podOf(question),
    container: container?.name ?? null,
    kind: container?.kind ?? null,
    requests: container?.requests ?? podRequests(request.pod),
    dryRun,
  });
}

function podOf({ uid, request: { pod } }: Question): HintRequest['pod'] {
  return Object.freeze({ uid, name: pod.name ?? uid, qosClass: pod.qosClass });
}

function podRequests(pod: PodRequest): Record<string, number> {
  const resources = new Set(pod.containers.flatMap(({ requests }) => Object.keys(requests)));
  return Object.freeze(
    Object.fromEntries([...resources].map((resource) => [resource, amountFor(pod, undefined, resource)])),
  );
}

/** The memory of the machine with all containers. REQUIRES: they are placed. */
export const memoryOf = ({ given }: Progress): MemoryDraft => given.at(-1)!.memory;

/** REQUIRES: all containers are placed. */
export function podAssignment(progress: Progress): PodAssignment {
  const { question, pool, draft, given } = progress;
  const { request, owner, uid, now } = question;
  const { pod, placement } = request;
  const isIsolated = pool === 'isolated' && !cpusTaken(draft, given.at(-1)!.cpus).isEmpty;
  const { containers: memory } = memoryOf(progress);
  return {
    uid,
    name: pod.name ?? uid,
    namespace: pod.namespace,
    containers: given.map((each) => assignmentOf(each, memory, request.isForCaller)),
    policy: placement.topologyPolicy,
    scope: placement.scope,
    options: isIsolated
      ? { ...placementOptions(placement), [ISOLATED_OPTION]: true }
      : placementOptions(placement),
    owner,
    enforcement: JUST_PLACED.enforcement,
    upcoming: JUST_PLACED.upcoming,
    transfer: JUST_PLACED.transfer,
    formerOwner: JUST_PLACED.formerOwner,
    admittedAt: now,
    unknown: NOTHING_UNKNOWN,
  };
}

// `containers`: what they have of memory at the end; later ones take over what init containers have had.
function assignmentOf(
  { container: { name, kind, requests }, hint, cpus: { cpus, held }, devices }: Given,
  containers: MemoryDraft['containers'],
  started: boolean,
): ContainerAssignment {
  const memory = containers.find((container) => container.name === name)?.blocks ?? NO_BLOCKS;
  const isLeft = kind === 'init';
  return {
    name,
    kind,
    started,
    request: requests,
    cpus,
    held,
    hint,
    devices,
    unknown: NOTHING_UNKNOWN,
    memory,
    reusable: isLeft ? { cpus: cpus.union(held), memory, devices } : NOTHING_LEFT,
  };
}

const NOTHING_UNKNOWN: ContainerAssignment['unknown'] = Object.freeze({});
const NO_BLOCKS: ContainerAssignment['memory'] = Object.freeze([]);
const NOTHING_LEFT: ContainerAssignment['reusable'] = Object.freeze({
  cpus: CpuSet.EMPTY,
  memory: NO_BLOCKS,
  devices: Object.freeze({}),
});

/**
 * Has custom providers give back what they allocated for a pod that is not admitted after all.
 * Answers the first error.
 */
export function undo(question: Question): unknown {
  if (question.providers.length === 0) return undefined;
  return askToRelease(question.providers, { pod: podOf(question), dryRun: question.dryRun });
}
