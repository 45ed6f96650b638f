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
import { Refusal } from '../base/refusal.js';
import { placementOptions } from '../input/placement.js';
import { amountFor, type PodRequest } from '../input/pod-request.js';
import type { AdmissionRequest } from '../input/request.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import { CpuSet } from '../machine/cpu-set.js';
import { ANY_NODES, type TopologyHint } from '../machine/hints.js';
import type { Topology } from '../machine/topology.js';
import { exclusiveCount } from './cpu-choices.js';
import { checkSharedPool } from './cpu-limits.js';
import { allocateCpus, cpuHints, cpusLeft, keptCpus } from './cpu-manager.js';
import { allocateDevices, deviceHints, devicesLeft } from './device-manager.js';
import type { DeviceResources } from './device-resources.js';
import { type Draft, firstDraft, nextDraft, withKept } from './draft.js';
import type { OfferedHints } from './explanation.js';
import {
  askForHints,
  askToAllocate,
  askToRelease,
  type HintProvider,
  type HintRequest,
} from './hints/hint-provider.js';
import { type Hints, type MergeResult, mergeOffered } from './hints/merge-hints.js';
import { allocateMemory, memoryHints, memoryLeft } from './memory-manager.js';

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
  draft: Draft;
  readonly containers: Omit<ContainerAssignment, 'memory' | 'reusable'>[];
  readonly offers: Offer[];
  /** The container at hand; undefined: the whole pod. */
  container: ContainerRequest | undefined;
}

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
    containers: [],
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
      ? admittedHint(progress)
      : undefined;
  for (const container of pod.containers) {
    progress.container = container;
    const hint = forPod ?? admittedHint(progress);
    progress.containers.push(allocate(progress, container, hint));
  }
  progress.container = undefined;
  checkSharedPool(progress.draft);
}

// Only growth can be where it should not.
function resizedHint(progress: Progress, { containers: [now] }: PodAssignment): TopologyHint {
  [progress.container] = progress.question.request.pod.containers;
  const { requests } = progress.container!;
  const isGrowing = Object.entries(requests).some(
    ([resource, amount]) => amount > (now!.request[resource] ?? 0),
  );
  return isGrowing ? admittedHint(progress) : now!.hint;
}

/** The merged hint for the container at hand, or for the pod. @throws ERR_TOPOLOGY_AFFINITY */
function admittedHint(progress: Progress): TopologyHint {
  const { topology, request } = progress.question;
  const { topologyPolicy, preferClosest } = request.placement;
  if (topologyPolicy === 'none') return ANY_NODES;
  const { asked, hints } = collectHints(progress);
  const { merged, families } = mergeOffered(hints, {
    numaNodes: topology.numaNodes,
    policy: topologyPolicy,
    distances: preferClosest ? topology.distances : undefined,
  });
  const offered: OfferedHints[] = [];
  for (let i = 0; i < asked.length; i++) {
    const { provider, resources } = asked[i]!;
    for (const resource of resources) offered.push({ provider, resource, hints: families[i]! });
  }
  progress.offers.push({ container: progress.container?.name ?? null, offered, merged });
  if (merged.admitted) return merged.hint;
  const message = `the resources cannot be aligned as ${topologyPolicy} asks`;
  throw new Refusal('TopologyAffinityError', 'ERR_TOPOLOGY_AFFINITY', message);
}

/** Of which resources the hints are that are at the same place of another list. */
interface Asked {
  readonly provider: string | null;
  readonly resources: readonly string[];
}

const CPU: Asked = { provider: null, resources: ['cpu'] };

// In the kubelet's order, and custom providers behind.
function collectHints(progress: Progress): { readonly asked: Asked[]; readonly hints: Hints[] } {
  const { topology, providers } = progress.question;
  const { draft, container } = progress;
  const asked: Asked[] = [];
  const hints: Hints[] = [];
  for (const { resource, hints: offered } of deviceHints(draft, container)) {
    asked.push({ provider: null, resources: [resource] });
    hints.push(offered);
  }
  const cpu = cpuHints(draft, container);
  if (cpu) {
    asked.push(CPU);
    hints.push(cpu);
  }
  const memory = memoryHints(draft, container);
  if (memory) {
    asked.push({ provider: null, resources: memory.types });
    hints.push(memory.question);
  }
  for (const provider of providers) {
    const offered = askForHints(provider, hintRequest(progress), topology.numaNodes);
    for (const resource of Object.keys(offered)) {
      asked.push({ provider: provider.name, resources: [resource] });
      hints.push(offered[resource]!);
    }
  }
  return { asked, hints };
}

function allocate(
  progress: Progress,
  container: ContainerRequest,
  hint: TopologyHint,
): Progress['containers'][number] {
  const { request, providers } = progress.question;
  const { draft } = progress;
  const devices = draft.kept?.devices ?? allocateDevices(draft, container, hint);
  const allocation = allocateCpus(draft, container, hint);
  const memory = allocateMemory(draft, container, hint);
  for (const provider of providers) askToAllocate(provider, hintRequest(progress), hint);
  progress.draft = nextDraft(
    draft,
    cpusLeft(draft, container, allocation),
    devicesLeft(draft, container, devices),
    memoryLeft(draft, container, memory),
  );
  const { name, kind, requests } = container;
  const { cpus, held } = allocation;
  return {
    name,
    kind,
    started: request.isForCaller,
    request: requests,
    cpus,
    held,
    hint,
    devices,
    unknown: {},
  };
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

export function podAssignment({ question, pool, draft, containers }: Progress): PodAssignment {
  const { request, owner, uid, now } = question;
  const { pod, placement } = request;
  const isIsolated = pool === 'isolated' && !draft.taken.isEmpty;
  return {
    uid,
    name: pod.name ?? uid,
    namespace: pod.namespace,
    containers: containers.map((container) => withMemoryAndReusable(draft, container)),
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
    unknown: {},
  };
}

// Known at the end only: later containers take over what init containers have had.
function withMemoryAndReusable(
  { memory: { blocks } }: Draft,
  { name, kind, started, request, cpus, held, hint, devices, unknown }: Progress['containers'][number],
): ContainerAssignment {
  const memory = blocks.get(name) ?? [];
  const isLeft = kind === 'init';
  return {
    name,
    kind,
    started,
    request,
    cpus,
    held,
    hint,
    devices,
    unknown,
    memory,
    reusable: {
      cpus: isLeft ? cpus.union(held) : CpuSet.EMPTY,
      memory: isLeft ? memory : [],
      devices: isLeft ? devices : {},
    },
  };
}

/**
 * Has custom providers give back what they allocated for a pod that is not admitted after all.
 * Answers the first error.
 */
export function undo(question: Question): unknown {
  if (question.providers.length === 0) return undefined;
  return askToRelease(question.providers, { pod: podOf(question), dryRun: question.dryRun });
}
