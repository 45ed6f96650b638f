// NearHint: CPUs and NUMA nodes for memory near a hint, taken in one call of the core, which merges the
// hints too if they are not merged yet. Pure.
import { native } from '../../base/native.js';
import type { MergeHintsCall } from '../../base/native-hints.js';
import type { AnswerReader } from '../../base/words.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { MAX_HINT_NODES, maskOf } from '../../machine/hint-masks.js';
import { hintAt, type TopologyHint } from '../../machine/hints.js';
import { type CpuFit, cpuFit, cpuHints, fitCall, type TakenCpus } from '../cpus/cpu-manager.js';
import type { DeviceRequest } from '../devices/device-draft.js';
import type { Draft } from '../draft/draft.js';
import { type Hints, type Merged, type MergeRules, mergeCall, readMerged } from '../hints/merge-hints.js';
import { type MemoryChoice, needsNodes, readChoice } from '../memory/memory-allocation.js';
import { memoryHints } from '../memory/memory-hints.js';
import type { MemoryRequests } from '../memory/memory-requests.js';
import { jointRules } from './joint-rules.js';

/** What a container, or the whole pod, takes near its hint. */
export interface Wanted {
  readonly fit: CpuFit | undefined;
  readonly memory: MemoryRequests;
  /** NUMA nodes for the memory are to be chosen. */
  readonly takesMemory: boolean;
}

/** What was taken near a hint. */
export interface Taken extends TakenCpus {
  /** Undefined if no memory was wanted. */
  readonly memory?: MemoryChoice | undefined;
}

export const wantedBy = (
  draft: Draft,
  container: ContainerRequest | undefined,
  memory: MemoryRequests,
): Wanted => ({ fit: cpuFit(draft, container), memory, takesMemory: needsNodes(draft, memory) });

/** Merges the hints, and takes what is wanted near them. `taken` is undefined if none is admitted. */
export function mergeAndTake(
  draft: Draft,
  hints: readonly Hints[],
  rules: MergeRules,
  wanted: Wanted,
): Merged & { readonly taken: Taken | undefined } {
  const isNarrowed = rules.joint !== undefined && !draft.kept;
  const answer = ask(draft, mergeCall(hints, rules), wanted, undefined, isNarrowed);
  const { merged, families } = readMerged(answer, hints, rules);
  return { merged, families, taken: merged.admitted ? readTaken(draft, wanted, answer) : undefined };
}

/** Takes what is wanted near a hint. `joint`: the requested devices, if the hint is a joint choice. */
export function takeNear(
  draft: Draft,
  container: ContainerRequest | undefined,
  wanted: Wanted,
  hint: TopologyHint,
  joint?: readonly DeviceRequest[],
): Taken {
  const { numaNodes } = draft.topology;
  // Nothing to distribute on one node; a resized container stays where it is.
  const isNarrowed = joint !== undefined && hint.nodes !== null && hint.nodes.size > 1 && !draft.kept;
  if ((!wanted.takesMemory && !isNarrowed) || numaNodes.length > MAX_HINT_NODES) return hint;
  const questions = [isNarrowed ? cpuHints(draft, container) : undefined, memoryHints(draft, wanted.memory)];
  const rules: MergeRules = isNarrowed
    ? jointRules(draft, 'best-effort', hint.nodes!, joint)
    : { numaNodes, policy: 'best-effort', distances: undefined };
  const merge = mergeCall(
    questions.filter((each) => each !== undefined),
    rules,
  );
  return readTaken(draft, wanted, ask(draft, merge, wanted, hint, isNarrowed));
}

const ask = (
  { placement, topology }: Draft,
  merge: MergeHintsCall,
  { fit, takesMemory }: Wanted,
  hint: TopologyHint | undefined,
  isNarrowed: boolean,
) =>
  native.decide({
    merge,
    hint: hint && {
      mask: hint.nodes && maskOf(hint.nodes, topology.numaNodes),
      preferred: hint.preferred,
    },
    bySocket: placement.alignBySocket,
    isNarrowed,
    cpus: fit && isEnough(fit) ? fitCall(fit) : undefined,
    takesMemory,
  });

// With too few, the allocation says why.
const isEnough = ({ from, count }: CpuFit) => count > 0 && from.size >= count;

function readTaken({ topology }: Draft, { fit, takesMemory }: Wanted, answer: AnswerReader): Taken {
  const { numaNodes } = topology;
  const mask = [answer.word(), answer.word()];
  const { nodes } = hintAt(mask[0] || mask[1] ? mask : null, false, numaNodes);
  const found = fit && isEnough(fit) && answer.flag() ? new CpuSet(answer.list()) : undefined;
  return { nodes, cpus: found, memory: takesMemory ? readChoice(answer, numaNodes) : undefined };
}
