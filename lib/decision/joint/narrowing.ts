// Narrowing: distributes resources over jointly chosen NUMA nodes. CPUs go to the fewest nodes that
// hold them, memory to all nodes if possible. Pure.
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import type { TopologyHint } from '../../machine/hints.js';
import { cpuHints } from '../cpus/cpu-manager.js';
import type { Draft } from '../cpus/draft.js';
import { type Hints, mergeOffered } from '../hints/merge-hints.js';
import { candidates, keptNodes, memoryHints } from '../memory/memory-hints.js';
import type { MemoryRequests } from '../memory/memory-requests.js';
import { jointSite } from './joint-site.js';

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
  const { nodes } = hint;
  // Nothing to choose; a resized container stays where it is.
  if (nodes === null || nodes.size <= 1 || draft.kept) return undivided(hint);
  const best = (hints: Hints | undefined): TopologyHint => {
    if (!hints) return hint;
    const { merged } = mergeOffered([hints], jointSite(draft, 'best-effort', nodes));
    return merged.admitted && merged.hint.nodes?.isSubsetOf(nodes) ? merged.hint : hint;
  };
  const mayShare = () => {
    const { merged } = mergeOffered(
      [candidates(draft, memory, [...nodes])],
      jointSite(draft, 'best-effort', nodes),
    );
    return merged.admitted && merged.hint.nodes?.equals(nodes);
  };
  // With alignBySocket, all nodes of a socket count as near.
  const cpus = draft.placement.alignBySocket ? hint : best(cpuHints(draft, container));
  const isWhole = memory.length === 0 || keptNodes(draft).length > 0 || mayShare();
  return { cpus, memory: isWhole ? hint : best(memoryHints(draft, memory)) };
}
