// Narrowing: distributes resources over jointly chosen NUMA nodes. CPUs go to the fewest nodes that
// hold them, memory to all nodes if possible. Pure.
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { TopologyHint } from '../../machine/hints.js';
import { cpuHints } from '../cpus/cpu-manager.js';
import type { Draft } from '../draft/draft.js';
import { type Hints, mergeOffered } from '../hints/merge-hints.js';
import { candidates, memoryHints } from '../memory/memory-hints.js';
import type { MemoryRequests } from '../memory/memory-requests.js';
import { jointRules } from './joint-rules.js';

/** The hints for a container's CPUs and memory. */
export interface ResourceHints {
  readonly cpus: TopologyHint;
  readonly memory: TopologyHint;
}

/** The same hint for both. */
export const undivided = (hint: TopologyHint): ResourceHints => ({ cpus: hint, memory: hint });

/** `container`: undefined for the whole pod. */
export function narrowed(
  draft: Draft,
  container: ContainerRequest | undefined,
  memory: MemoryRequests,
  hint: TopologyHint,
): ResourceHints {
  // Nothing to choose; a resized container stays where it is.
  if (hint.nodes === null || hint.nodes.size <= 1 || draft.kept) return undivided(hint);
  const best = (near: TopologyHint, ...hints: readonly (Hints | undefined)[]): TopologyHint => {
    const asked = hints.filter((each) => each !== undefined);
    if (asked.length < hints.length) return near;
    const { merged } = mergeOffered(asked, jointRules(draft, 'best-effort', near.nodes!));
    return merged.admitted && merged.hint.nodes?.isSubsetOf(near.nodes!) ? merged.hint : near;
  };
  const cpuQuestion = cpuHints(draft, container);
  const memoryQuestion = memoryHints(draft, memory);
  // With alignBySocket, all nodes of a socket count as near.
  const { alignBySocket } = draft.placement;
  // The other nodes are for devices: CPUs and memory stay together.
  const near = alignBySocket ? hint : best(hint, cpuQuestion, memoryQuestion);
  const mayShare = () => {
    const { merged } = mergeOffered(
      [candidates(draft, memory, [...near.nodes!])],
      jointRules(draft, 'best-effort', near.nodes!),
    );
    return merged.admitted && merged.hint.nodes?.equals(near.nodes!);
  };
  const isWhole = memory.length === 0 || mayShare();
  return {
    cpus: alignBySocket ? hint : best(near, cpuQuestion),
    memory: isWhole ? near : best(near, memoryQuestion),
  };
}
