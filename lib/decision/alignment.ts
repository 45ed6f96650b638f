// Alignment: merges the hints of all providers, for a container or for the whole pod, to one hint, and takes
// CPUs and NUMA nodes for memory near it, in one call of the core. Pure, except for custom hint
// providers.
import { withLast } from '../base/collections/lists.js';
import { native } from '../base/native.js';
import type { DecideCall, MergeRules } from '../base/native-hints.js';
import { refusal } from '../base/refusal.js';
import type { AnswerReader } from '../base/words.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import { CpuSet } from '../machine/cpu-set.js';
import { MAX_HINT_NODES, maskOf } from '../machine/hint-masks.js';
import { ANY_NODES, HintFamily, hintAt, type TopologyHint } from '../machine/hints.js';
import { type CpuFit, cpuFit, cpuHints, fitCall, type TakenCpus } from './cpus/cpu-manager.js';
import { type DeviceRequest, deviceRequests } from './devices/device-draft.js';
import { deviceHints } from './devices/device-hints.js';
import type { Draft } from './draft/draft.js';
import { askForHints } from './hints/hint-provider.js';
import { type AskedHints, type Hints, mergeOffered, policyAt, readMerged } from './hints/merge-hints.js';
import { distancesFor } from './joint/allocation-strategy.js';
import { jointRules } from './joint/joint-rules.js';
import { type MemoryChoice, needsNodes, readChoice } from './memory/memory-allocation.js';
import { memoryHints } from './memory/memory-hints.js';
import { type MemoryRequests, memoryRequests } from './memory/memory-requests.js';
import type { Progress } from './progress.js';
import { hintRequest, listsHints } from './question.js';

/** What a container, or the whole pod, requests of the managers, and takes near its hint. */
export interface Wanted {
  readonly devices: readonly DeviceRequest[];
  readonly memory: MemoryRequests;
  /** undefined: no CPUs are taken. */
  readonly fit: CpuFit | undefined;
  /** NUMA nodes for the memory are to be chosen. */
  readonly takesMemory: boolean;
}

/** `takes`: false if only a hint is wanted. */
export function wantedBy(draft: Draft, container: ContainerRequest | undefined, takes = true): Wanted {
  const memory = memoryRequests(draft, container);
  return {
    devices: deviceRequests(draft, container),
    memory,
    fit: takes ? cpuFit(draft, container) : undefined,
    takesMemory: takes && needsNodes(draft, memory),
  };
}

/** A hint, and what was taken near it. */
export interface Aligned extends TakenCpus {
  readonly hint: TopologyHint;
  /** Undefined if no memory was wanted. */
  readonly memory: MemoryChoice | undefined;
}

/**
 * The merged hint for the current container, or for the pod, and what is wanted near it. `merged`: the
 * hint that was merged before.
 * @throws ERR_TOPOLOGY_AFFINITY
 */
export function aligned(progress: Progress, wanted: Wanted, merged?: TopologyHint): Aligned {
  const { draft, container, joint } = progress;
  const { topologyPolicy } = draft.placement;
  const isMerged = merged === undefined && (topologyPolicy !== 'none' || joint !== undefined);
  const asked = isMerged ? askedHints(progress, wanted) : NONE;
  if (!isMerged || (topologyPolicy === 'none' && asked.length === 0))
    return takeNear(draft, container, wanted, merged ?? ANY_NODES, joint !== undefined);
  const rules = rulesOf(progress, wanted, asked);
  const isNarrowed = joint !== undefined && !draft.kept;
  const lists = listsHints(progress.question);
  const answer = ask(draft, wanted, { asked, rules, hint: undefined, lists, isNarrowed });
  const { merged: result, offered } = readMerged(answer, asked, rules, lists);
  progress.offers = withLast(progress.offers, {
    container: container?.name ?? null,
    offered,
    merged: result,
  });
  if (result.admitted) return readTaken(draft, wanted, result.hint, answer);
  const message = `the resources cannot be aligned as ${topologyPolicy} asks`;
  throw refusal('TopologyAffinityError', 'ERR_TOPOLOGY_AFFINITY', message, {});
}

/** Takes what is wanted near a hint that was merged before. `isJoint`: by a joint choice. */
export function takeNear(
  draft: Draft,
  container: ContainerRequest | undefined,
  wanted: Wanted,
  hint: TopologyHint,
  isJoint = false,
): Aligned {
  const { numaNodes } = draft.topology;
  const { nodes, preferred } = hint;
  // Nothing to distribute on one node; a resized container stays where it is.
  const isNarrowed = isJoint && nodes !== null && nodes.size > 1 && !draft.kept;
  if ((!wanted.takesMemory && !isNarrowed) || numaNodes.length > MAX_HINT_NODES)
    return { hint, nodes, cpus: undefined, memory: undefined };
  const cpus = isNarrowed ? cpuHints(draft, container) : undefined;
  const ofMemory = memoryHints(draft, wanted.memory);
  const asked = wanted.memory.map(({ type }) => own(type, ofMemory!));
  if (cpus) asked.unshift(own('cpu', cpus));
  const rules: MergeRules = isNarrowed
    ? jointRules(draft, 'best-effort', nodes, wanted.devices)
    : { numaNodes, policy: policyAt('best-effort'), distances: undefined };
  const mask = nodes && maskOf(nodes, numaNodes);
  const call = { asked, rules, hint: { mask, preferred }, lists: false, isNarrowed };
  return readTaken(draft, wanted, hint, ask(draft, wanted, call));
}

// With too few, the allocation says why.
const enough = ({ fit }: Wanted) => (fit && fit.count > 0 && fit.from.size >= fit.count ? fit : undefined);

function ask(
  { placement }: Draft,
  wanted: Wanted,
  { asked, rules, hint, lists, isNarrowed }: Omit<DecideCall, 'bySocket' | 'cpus' | 'takesMemory'>,
): AnswerReader {
  const fit = enough(wanted);
  return native.decide({
    asked,
    rules,
    hint,
    lists,
    bySocket: placement.alignBySocket,
    isNarrowed,
    cpus: fit && fitCall(fit),
    takesMemory: wanted.takesMemory,
  });
}

function readTaken(
  { topology: { numaNodes } }: Draft,
  wanted: Wanted,
  hint: TopologyHint,
  answer: AnswerReader,
): Aligned {
  const mask = [answer.word(), answer.word()];
  const { nodes } = hintAt(mask[0] || mask[1] ? mask : null, false, numaNodes);
  const cpus = enough(wanted) && answer.flag() ? new CpuSet(answer.list()) : undefined;
  return { hint, nodes, cpus, memory: wanted.takesMemory ? readChoice(answer, numaNodes) : undefined };
}

function rulesOf(
  { draft, joint }: Progress,
  { devices, memory }: Wanted,
  asked: readonly AskedHints[],
): MergeRules {
  const { topology, placement } = draft;
  const { topologyPolicy: policy, preferClosest, allocationStrategy } = placement;
  if (joint) return jointRules(draft, policy, joint.within, devices);
  const closest = preferClosest ? topology.distances : undefined;
  const distances =
    allocationStrategy === 'none'
      ? closest
      : distancesFor(draft, { cpus: asked.some(isOfCpus), memory, devices }, closest);
  return { numaNodes: topology.numaNodes, policy: policyAt(policy), distances };
}

const isOfCpus = ({ provider, resource }: AskedHints) => provider === null && resource === 'cpu';

/** The hints offered for the pod as a whole, whatever its scope. REQUIRES: no custom providers. */
export function offeredForPod(progress: Progress): readonly HintFamily[] {
  const wanted = wantedBy(progress.draft, undefined, false);
  const asked = askedHints(progress, wanted);
  if (asked.length === 0) return [];
  return mergeOffered(asked, rulesOf(progress, wanted, asked)).offered.map(({ hints }) => hints);
}

const NONE: readonly AskedHints[] = [];

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

// In the kubelet's order, with custom providers last. Memory is several resources with common hints.
function askedHints(progress: Progress, { devices, memory }: Wanted): readonly AskedHints[] {
  const { draft, container, initNodes } = progress;
  const { providers } = progress.question;
  const { numaNodes } = draft.topology;
  const cpus = cpuHints(draft, container);
  const ofMemory = memoryHints(draft, memory);
  // Allocated at full length: a growing list takes several times as long.
  const asked = new Array<AskedHints>(devices.length + (cpus ? 1 : 0) + memory.length);
  let at = 0;
  for (let i = 0; i < devices.length; i++)
    asked[at++] = own(devices[i]!.resource.name, deviceHints(draft, devices[i]!));
  if (cpus) asked[at++] = own('cpu', cpus);
  for (let i = 0; i < memory.length; i++) asked[at++] = own(memory[i]!.type, ofMemory!);
  for (const provider of providers) {
    const offered = askForHints(provider, hintRequest(progress), numaNodes);
    for (const resource of Object.keys(offered))
      asked.push({ provider: provider.name, resource, hints: offered[resource]! });
  }
  if (initNodes && asked.length > 0 && isFirst(progress))
    asked.push(own(LOOKAHEAD, HintFamily.from([{ nodes: initNodes, preferred: true }], numaNodes)));
  return asked;
}

const own = (resource: string, hints: Hints): AskedHints => ({ provider: null, resource, hints });
