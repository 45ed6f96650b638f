// BestTrial: tries ways to place a whole pod, and returns the one on the fewest and nearest NUMA
// nodes. Pure.
import type { NodeSet } from '../../machine/cpu-set.js';
import type { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import { distanceOf, isBest, isBetter, type Score } from './score.js';

/**
 * `kubelet`: as the kubelet, container by container; `ahead`: the same, with init containers placed
 * for the whole pod; or a joint choice within these nodes, undefined for all.
 */
export type Way = 'kubelet' | 'ahead' | { readonly within: NodeSet | undefined };

/** A pod as one way places it. */
export interface Trial<Placed> {
  readonly placed: Placed;
  readonly score: Score;
}

export interface TrialGround<Placed> {
  readonly topology: Topology;
  /** Places the pod one way; undefined if it is refused. */
  readonly attempt: (way: Way) => Trial<Placed> | undefined;
  /** True if its containers are aligned one by one. */
  readonly hasSeveral: boolean;
  readonly hasInit: boolean;
  /** The hints offered for the pod as a whole. */
  readonly offered: () => readonly HintFamily[];
  /** The free room on each node, by its position. */
  readonly rooms: () => readonly number[];
}

/** Returns the best trial. A joint choice wins a tie. Undefined if every way is refused. */
export function bestTrial<Placed>(ground: TrialGround<Placed>): Trial<Placed> | undefined {
  const { attempt, hasSeveral, hasInit } = ground;
  // For one container, or a pod aligned as a whole, the joint choice is the best already.
  let best = attempt({ within: undefined });
  if (hasSeveral && !isDone(best)) best = bestWithin(ground, best);
  if (isDone(best)) return best;
  best = betterOf(best, attempt('kubelet'));
  // This way needs the fewest nodes in all, but perhaps more for one container.
  return hasInit ? betterOf(best, attempt('ahead')) : best;
}

const isDone = (trial: Trial<unknown> | undefined) => trial !== undefined && isBest(trial.score);

/** Returns the first if both are equally good. */
function betterOf<T extends Trial<unknown>>(one: T | undefined, other: T | undefined): T | undefined {
  if (!one || !other) return one ?? other;
  return isBetter(other.score, one.score) ? other : one;
}

// Tries the pod on at most this many sets of nodes.
const MOST_SETS = 64;

// Container by container, each gets its own best nodes. Restricted to a set, they share its nodes.
function bestWithin<Placed>(ground: TrialGround<Placed>, first: Trial<Placed> | undefined) {
  const { topology, attempt } = ground;
  let best = first;
  for (const within of setsFor(ground)) {
    if (best && cannotWin(best.score, within.size, distanceOf(topology, within))) break;
    best = betterOf(best, attempt({ within }));
  }
  return best;
}

// Narrow sets come first, and near ones first among these. A pod may need fewer nodes than the set
// has; then it was tried on those.
function cannotWin({ placed, ofContainers, ofPod, podApart }: Score, size: number, apart: number): boolean {
  return ofContainers === placed && (ofPod < size || (ofPod === size && podApart <= apart));
}

function setsFor<Placed>({ topology, offered, rooms }: TrialGround<Placed>): readonly NodeSet[] {
  const sets = new Map<string, NodeSet>();
  for (const family of offered())
    for (const { nodes } of family.first(MOST_SETS)) if (nodes) sets.set(nodes.toString(), nodes);
  const free = rooms();
  const roomOf = (nodes: NodeSet) =>
    [...nodes].reduce((sum, node) => sum + free[topology.numaNodes.indexOf(node)]!, 0);
  return [...sets.values()]
    .map((nodes) => ({ nodes, apart: distanceOf(topology, nodes), room: roomOf(nodes) }))
    .sort((a, b) => a.nodes.size - b.nodes.size || a.apart - b.apart || a.room - b.room)
    .slice(0, MOST_SETS)
    .map(({ nodes }) => nodes);
}
