// NodesAhead: chooses the NUMA nodes for a pod's init containers so that the whole pod fits near
// them. Pure.

import type { NodeSet } from '../../machine/cpu-set.js';
import type { HintFamily } from '../../machine/hints.js';

/** The outcome of placing a whole pod. */
export interface Trial {
  /** The NUMA nodes of all containers; undefined if the pod is refused. */
  readonly nodes: NodeSet | undefined;
  /** The hints offered for its init containers. */
  readonly offered: readonly HintFamily[];
}

// Per resource; the narrowest sets come first.
const MOST_SETS = 64;

/**
 * The nodes for the first init containers with which the pod needs the fewest NUMA nodes. Undefined
 * means no restriction, which wins a tie. `attempt` places the whole pod.
 */
export function nodesAhead(attempt: (within: NodeSet | undefined) => Trial): NodeSet | undefined {
  const { nodes, offered } = attempt(undefined);
  let fewest = nodes?.size ?? Number.POSITIVE_INFINITY;
  let best: NodeSet | undefined;
  for (const within of setsOf(offered)) {
    // One node is the best possible.
    if (fewest <= 1) break;
    const size = attempt(within).nodes?.size ?? Number.POSITIVE_INFINITY;
    if (size < fewest) [fewest, best] = [size, within];
  }
  return best;
}

function setsOf(offered: readonly HintFamily[]): Iterable<NodeSet> {
  const sets = new Map<string, NodeSet>();
  for (const family of offered)
    for (const { nodes } of family.first(MOST_SETS)) if (nodes) sets.set(nodes.toString(), nodes);
  return [...sets.values()].sort((a, b) => a.size - b.size);
}
