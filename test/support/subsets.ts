// Sets of NUMA nodes in the order of hints.
import { NodeSet } from '../../lib/index.js';

/**
 * All sets of these nodes but the empty one: those of fewer nodes first, then by their places in the
 * list. Of [0, 1, 2]: [0] [1] [2] [0,1] [0,2] [1,2] [0,1,2].
 */
export function* subsetsOf(nodes: readonly number[]): Generator<NodeSet> {
  for (let count = 1; count <= nodes.length; count++) yield* choose(nodes, count, []);
}

function* choose(from: readonly number[], count: number, chosen: readonly number[]): Generator<NodeSet> {
  if (count === 0) yield NodeSet.from(chosen);
  for (let i = 0; count > 0 && i + count <= from.length; i++)
    yield* choose(from.slice(i + 1), count - 1, [...chosen, from[i]!]);
}
