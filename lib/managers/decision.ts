// Decision: hints, merge, allocate, for each container or for the whole pod. Pure, but for what custom hint providers do.
import { type Placement, placementOptions, TOPOLOGY_MANAGER_POLICIES } from '../config.js';
import { CpuSet } from '../cpu-set.js';
import { NumalignError } from '../errors.js';
import { askForHints, askToAllocate, askToRelease, type HintProvider, type HintRequest } from '../hint-provider.js';
import { ANY_NODES, type HintFamily, type TopologyHint } from '../hints.js';
import { type MergeResult, mergeFamilies } from '../merge-hints.js';
import { type ContainerRequest, type PodRequest, podTotal } from '../pod-request.js';
import type { AdmissionRequest } from '../request.js';
import type { Assignments, ContainerAssignment, OwnerRecord, PodAssignment } from '../state/assignments.js';
import type { Topology } from '../topology.js';
import { allocateCpus, checkSharedPool, cpuHints, type Draft } from './cpu-manager.js';
import { type AdmissionReason, type Explanation, explain, holdersOf } from './explanation.js';

/** What a decision looks at: all of it is input, nothing is read from the machine. */
export interface Question {
  readonly topology: Topology;
  readonly state: Assignments;
  readonly request: AdmissionRequest;
  readonly providers: readonly HintProvider[];
  readonly owner: OwnerRecord;
  readonly uid: string;
  readonly now: Date;
  readonly dryRun: boolean;
}

/** What was merged to one hint: for a container, or (null) for the whole pod. */
export interface Offer {
  readonly container: string | null;
  /** The hints by resource. */
  readonly resources: Readonly<Record<string, HintFamily>>;
  readonly merged: MergeResult;
}

export interface Decision {
  readonly pod: PodAssignment;
  readonly offers: readonly Offer[];
}

/** Why there is none: `reason` and `explanation` are in the error's details. */
export interface Rejection {
  readonly error: NumalignError;
  readonly offers: readonly Offer[];
}

// How far a decision has come.
interface Progress {
  readonly question: Question;
  readonly containers: ContainerAssignment[];
  readonly offers: Offer[];
  /** The container at hand; undefined: the whole pod. */
  container: ContainerRequest | undefined;
}

/**
 * Decides. What custom providers have allocated stays with them only where the pod is admitted. A rejection's error is ERR_TOPOLOGY_AFFINITY, ERR_SMT_ALIGNMENT,
 * ERR_INSUFFICIENT_CPUS, ERR_SHARED_POOL_EMPTY, or ERR_HINT_PROVIDER where one could not allocate.
 * @throws ERR_HINT_PROVIDER for a provider that does not do as it should
 */
export function decide(question: Question): Decision | Rejection {
  const progress: Progress = { question, containers: [], offers: [], container: undefined };
  try {
    place(progress);
    return { pod: podAssignment(progress), offers: progress.offers };
  } catch (error) {
    undo(question);
    if (!(error instanceof NumalignError) || error.details.reason === undefined) throw error;
    return { error: explained(progress, error), offers: progress.offers };
  }
}

function place(progress: Progress): void {
  const { pod, placement } = progress.question.request;
  const forPod = placement.scope === 'pod' ? admittedHint(progress) : undefined;
  for (const container of pod.containers) {
    progress.container = container;
    const hint = forPod ?? admittedHint(progress);
    progress.containers.push(allocate(progress, container, hint));
  }
  progress.container = undefined;
  checkSharedPool(draftOf(progress));
}

/** The merged hint for the container at hand, or for the pod. @throws ERR_TOPOLOGY_AFFINITY */
function admittedHint(progress: Progress): TopologyHint {
  const { topology, request } = progress.question;
  const { topologyPolicy, preferClosest } = request.placement;
  if (topologyPolicy === 'none') return ANY_NODES;
  const resources = collectHints(progress);
  const merged = mergeFamilies(Object.values(resources), {
    numaNodes: topology.numaNodes,
    policy: topologyPolicy,
    distances: preferClosest ? topology.distances : undefined,
  });
  progress.offers.push({ container: progress.container?.name ?? null, resources, merged });
  if (merged.admitted) return merged.hint;
  throw new NumalignError('ERR_TOPOLOGY_AFFINITY', `the resources cannot be aligned as ${topologyPolicy} asks`, {
    reason: 'TopologyAffinityError',
  });
}

function collectHints(progress: Progress): Record<string, HintFamily> {
  const { topology, providers } = progress.question;
  const cpu = cpuHints(draftOf(progress), progress.container);
  // Without a prototype: a resource may have any name.
  const resources: Record<string, HintFamily> = Object.create(null);
  if (cpu) resources.cpu = cpu;
  for (const provider of providers) {
    const hints = askForHints(provider, hintRequest(progress), topology.numaNodes);
    for (const [resource, family] of Object.entries(hints)) {
      // Each provider's hints count, whatever it calls its resource.
      resources[resource in resources ? `${resource} of ${provider.name}` : resource] = family;
    }
  }
  return resources;
}

function allocate(progress: Progress, container: ContainerRequest, hint: TopologyHint): ContainerAssignment {
  const { request, providers } = progress.question;
  const { cpus, held } = allocateCpus(draftOf(progress), container, hint);
  for (const provider of providers) askToAllocate(provider, hintRequest(progress), hint);
  const { name, kind, requests } = container;
  return {
    name,
    kind,
    started: request.isForCaller,
    request: requests,
    cpus,
    held,
    hint,
    memory: [],
    devices: {},
    reusable: { cpus: kind === 'init' ? cpus.union(held) : CpuSet.EMPTY, memory: [], devices: {} },
    unknown: {},
  };
}

function draftOf({ question, containers }: Progress): Draft {
  const { topology, state, request } = question;
  const { pod, placement, isForCaller } = request;
  return { topology, state, pod, placement, allowed: isForCaller ? topology.allowed : topology.cpus, containers };
}

function hintRequest({ question, container }: Progress): HintRequest {
  const { request, dryRun } = question;
  return {
    pod: podOf(question),
    container: container?.name ?? null,
    kind: container?.kind ?? null,
    requests: container?.requests ?? podRequests(request.pod),
    dryRun,
  };
}

function podOf({ uid, request: { pod } }: Question): HintRequest['pod'] {
  return { uid, name: pod.name ?? uid, qosClass: pod.qosClass };
}

function podRequests(pod: PodRequest): Record<string, number> {
  const resources = new Set(pod.containers.flatMap(({ requests }) => Object.keys(requests)));
  return Object.fromEntries(
    [...resources].map((resource) => [resource, podTotal(pod, ({ requests }) => requests[resource] ?? 0)]),
  );
}

function podAssignment({ question, containers }: Progress): PodAssignment {
  const { request, owner, uid, now } = question;
  const { pod, placement } = request;
  return {
    uid,
    name: pod.name ?? uid,
    containers,
    policy: placement.topologyPolicy,
    scope: placement.scope,
    options: placementOptions(placement),
    owner,
    enforcement: { level: 'recorded', target: null },
    admittedAt: now.toISOString(),
    unknown: {},
  };
}

/** Has custom providers give back what they allocated for a pod that is not admitted after all. What they throw is not worth losing the reason for. */
export function undo(question: Question): void {
  try {
    askToRelease(question.providers, { pod: podOf(question), dryRun: question.dryRun });
  } catch {}
}

// ---- rejections

function explained(progress: Progress, error: NumalignError): NumalignError {
  const { question, offers, container } = progress;
  const draft = draftOf(progress);
  const offer = offers.at(-1);
  const explanation = explain({
    draft,
    reason: error.details.reason as AdmissionReason,
    message: error.message,
    container: container?.name ?? null,
    offered: offer?.resources ?? {},
    admittedUnder: weakerPolicies(question.request.placement)
      .filter((placement) => wouldAdmit(question, placement))
      .map((placement) => placement.topologyPolicy),
  });
  const { settings } = question.state;
  return new NumalignError(error.code, messageOf(error.message, explanation), {
    ...error.details,
    cause: error.cause,
    reserved: settings.reservedSystemCPUs.toString(),
    holders: holdersOf(draft),
    explanation,
  });
}

// One line: the lines of the explanation, but for its first.
function messageOf(message: string, { text }: Explanation): string {
  const rest = text
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
  return [message, ...rest].join('; ');
}

/** The placements that differ in a weaker policy, the strictest first. */
function weakerPolicies(placement: Placement): Placement[] {
  const weaker = TOPOLOGY_MANAGER_POLICIES.slice(0, TOPOLOGY_MANAGER_POLICIES.indexOf(placement.topologyPolicy));
  return weaker.reverse().map((topologyPolicy) => ({ ...placement, topologyPolicy }));
}

function wouldAdmit(question: Question, placement: Placement): boolean {
  const asked = { ...question, request: { ...question.request, placement }, dryRun: true };
  const progress: Progress = { question: asked, containers: [], offers: [], container: undefined };
  try {
    place(progress);
    return true;
  } catch (error) {
    if (error instanceof NumalignError) return false;
    throw error;
  } finally {
    undo(asked);
  }
}
