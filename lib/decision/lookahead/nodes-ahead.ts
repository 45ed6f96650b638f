// NodesAhead: to which NUMA nodes a pod's init containers are kept, so that the whole pod fits near
// them. Pure.

import type { NodeSet } from '../../machine/cpu-set.js';
import type { HintFamily } from '../../machine/hints.js';

/** What came of placing a whole pod. */
export interface Trial {
  /** All NUMA nodes of what its containers get; undefined: it is refused. */
  readonly nodes: NodeSet | undefined;
  /** What was offered for its init containers. */
  readonly offered: readonly HintFamily[];
}

// Of one resource: the narrowest come first.
const MOST_SETS = 64;

/**
 * The nodes within which the first init containers are placed so that the pod is admitted on the
 * fewest NUMA nodes; undefined: anywhere, which wins a tie. `attempt` places the whole pod.
 */
export function nodesAhead(attempt: (within: NodeSet | undefined) => Trial): NodeSet | undefined {
  const { nodes, offered } = attempt(undefined);
  let fewest = nodes?.size ?? Number.POSITIVE_INFINITY;
  let best: NodeSet | undefined;
  for (const within of setsOf(offered)) {
    // What needs no more than one node cannot be placed any better.
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
