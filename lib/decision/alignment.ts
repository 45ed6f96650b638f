// Alignment: merges the hints of all providers, for a container or for the whole pod, to one hint.
// Pure, except for custom hint providers.
import { withLast } from '../base/collections/lists.js';
import { refusal } from '../base/refusal.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { ANY_NODES, HintFamily, type TopologyHint } from '../machine/hints.js';
import { cpuHints } from './cpus/cpu-manager.js';
import { type DeviceRequest, deviceRequests } from './devices/device-draft.js';
import { deviceHints } from './devices/device-hints.js';
import type { Draft } from './draft/draft.js';
import { askForHints } from './hints/hint-provider.js';
import { type Hints, type MergeRules, mergeOffered } from './hints/merge-hints.js';
import { distancesFor } from './joint/allocation-strategy.js';
import { jointRules } from './joint/joint-rules.js';
import { mergeAndTake, type Taken, takeNear, type Wanted } from './joint/near-hint.js';
import { memoryHints } from './memory/memory-hints.js';
import { type MemoryRequests, memoryRequests } from './memory/memory-requests.js';
import type { Progress } from './progress.js';
import { hintRequest } from './question.js';
import type { OfferedHints } from './resource-explanations.js';

/** The requests to the managers for a container, or for the whole pod. */
export interface Requests {
  readonly devices: readonly DeviceRequest[];
  readonly memory: MemoryRequests;
}

export function requestsFor(draft: Draft, container: ContainerRequest | undefined): Requests {
  return { devices: deviceRequests(draft, container), memory: memoryRequests(draft, container) };
}

const NOTHING: Wanted = { fit: undefined, memory: [], takesMemory: false };

/** A hint, and what was taken near it of what is wanted. */
export interface Aligned {
  readonly hint: TopologyHint;
  readonly wanted: Wanted;
  readonly taken: Taken;
}

/**
 * The merged hint for the current container, or for the pod, and what is wanted near it. `merged`: the
 * hint that was merged before.
 * @throws ERR_TOPOLOGY_AFFINITY
 */
export function aligned(
  progress: Progress,
  requests: Requests,
  wanted = NOTHING,
  merged?: TopologyHint,
): Aligned {
  const { draft, container, joint } = progress;
  const { topologyPolicy } = progress.question.request.placement;
  const answers = merged || (topologyPolicy === 'none' && !joint) ? [] : answersFor(progress, requests);
  if (merged || (topologyPolicy === 'none' && answers.length === 0)) {
    const hint = merged ?? ANY_NODES;
    return { hint, wanted, taken: takeNear(draft, container, wanted, hint, joint && requests.devices) };
  }
  const answer = mergeAndTake(draft, hintsOf(answers), rulesOf(progress, requests, answers), wanted);
  progress.offers = withLast(progress.offers, {
    container: progress.container?.name ?? null,
    offered: offeredHints(answers, answer.families),
    merged: answer.merged,
  });
  if (answer.taken) return { hint: answer.merged.hint, wanted, taken: answer.taken };
  const message = `the resources cannot be aligned as ${topologyPolicy} asks`;
  throw refusal('TopologyAffinityError', 'ERR_TOPOLOGY_AFFINITY', message, {});
}

function hintsOf(answers: readonly Answer[]): readonly Hints[] {
  const hints = new Array<Hints>(answers.length);
  for (let i = 0; i < answers.length; i++) hints[i] = answers[i]!.hints;
  return hints;
}

function rulesOf(
  { question, draft, joint }: Progress,
  { devices, memory }: Requests,
  answers: readonly Answer[],
): MergeRules {
  const { topology, request } = question;
  const { topologyPolicy } = request.placement;
  if (joint) return jointRules(draft, topologyPolicy, joint.within, devices);
  const cpus = answers.some(({ provider, resource }) => provider === null && resource === 'cpu');
  return {
    numaNodes: topology.numaNodes,
    policy: topologyPolicy,
    distances: distancesFor(draft, { cpus, memory, devices }),
  };
}

/** The hints offered for the pod as a whole, whatever its scope. REQUIRES: no custom providers. */
export function offeredForPod(progress: Progress): readonly HintFamily[] {
  const requests = requestsFor(progress.draft, undefined);
  const answers = answersFor(progress, requests);
  if (answers.length === 0) return [];
  return mergeOffered(hintsOf(answers), rulesOf(progress, requests, answers)).families;
}

/** The hints of one provider. Memory is several resources with common hints. */
interface Answer {
  readonly provider: string | null;
  readonly resource: string;
  readonly others: readonly string[];
  readonly hints: Hints;
}

const NO_OTHERS: readonly string[] = [];

/** The name in offers for the nodes that a pod's init containers are restricted to. */
const LOOKAHEAD = 'initContainerLookahead';

/**
 * True if the current container is an init container or sidecar, and no init container before it
 * was aligned.
 */
function isFirst({ container, allocations }: Progress): boolean {
  if (container === undefined || container.kind === 'app') return false;
  for (const before of allocations) if (before.container.kind === 'init' && before.hint.nodes) return false;
  return true;
}

// In the kubelet's order, with custom providers last.
function answersFor(progress: Progress, { devices, memory }: Requests): readonly Answer[] {
  const { topology, providers } = progress.question;
  const { draft, container } = progress;
  const cpu = cpuHints(draft, container);
  const memoryQuestion = memoryHints(draft, memory);
  const answers = new Array<Answer>(devices.length + (cpu ? 1 : 0) + (memoryQuestion ? 1 : 0));
  for (let i = 0; i < devices.length; i++) {
    const resource = devices[i]!.resource.name;
    answers[i] = { provider: null, resource, others: NO_OTHERS, hints: deviceHints(draft, devices[i]!) };
  }
  let at = devices.length;
  if (cpu) answers[at++] = { provider: null, resource: 'cpu', others: NO_OTHERS, hints: cpu };
  if (memoryQuestion) {
    const others = memory.length === 1 ? NO_OTHERS : memory.slice(1).map(({ type }) => type);
    answers[at++] = { provider: null, resource: memory[0]!.type, others, hints: memoryQuestion };
  }
  for (const provider of providers) {
    const offered = askForHints(provider, hintRequest(progress), topology.numaNodes);
    for (const resource of Object.keys(offered))
      answers.push({ provider: provider.name, resource, others: NO_OTHERS, hints: offered[resource]! });
  }
  if (progress.initNodes && answers.length > 0 && isFirst(progress)) {
    const hints = HintFamily.from([{ nodes: progress.initNodes, preferred: true }], topology.numaNodes);
    answers.push({ provider: null, resource: LOOKAHEAD, others: NO_OTHERS, hints });
  }
  return answers;
}

// Lists each type of memory as a resource.
function offeredHints(answers: readonly Answer[], families: readonly HintFamily[]): readonly OfferedHints[] {
  const offered = new Array<OfferedHints>(answers.length);
  let next = 0;
  for (let i = 0; i < answers.length; i++) {
    const { provider, resource, others } = answers[i]!;
    const hints = families[i]!;
    offered[next++] = { provider, resource, hints };
    for (const other of others) offered[next++] = { provider, resource: other, hints };
  }
  return offered;
}
