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

/** How many sets of nodes are tried of each resource; the narrowest come first. */
export const MOST_SETS = 64;

/**
 * The nodes for the first init containers with which the pod needs the fewest NUMA nodes. Undefined
 * means no restriction, which wins a tie. `attempt` places the whole pod.
 */
export function nodesAhead(attempt: (within: NodeSet | undefined) => Trial): NodeSet | undefined {
  const { nodes, offered } = attempt(undefined);
  let fewest = nodes?.size ?? Number.POSITIVE_INFINITY;
  let best: NodeSet | undefined;
  for (const within of offeredSets(offered).sort((a, b) => a.size - b.size)) {
    // One node is the best possible.
    if (fewest <= 1) break;
    const size = attempt(within).nodes?.size ?? Number.POSITIVE_INFINITY;
    if (size < fewest) [fewest, best] = [size, within];
  }
  return best;
}

/** The sets of nodes that are offered, each once. */
export function offeredSets(families: readonly HintFamily[]): NodeSet[] {
  const hints = families.flatMap((family) => family.first(MOST_SETS));
  const sets = hints.flatMap(({ nodes }) => (nodes ? [[nodes.toString(), nodes] as const] : []));
  return [...new Map(sets).values()];
}
