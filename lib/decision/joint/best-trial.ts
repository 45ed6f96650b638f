// BestTrial: of the ways to place a whole pod the one on the fewest and nearest NUMA nodes. Pure.
import type { NodeSet } from '../../machine/cpu-set.js';
import type { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import { distanceOf, isBest, isBetter, type Score } from './score.js';

/**
 * As the kubelet chooses, container by container or with the whole pod ahead; or NUMA nodes chosen
 * jointly, of these or (undefined) of all.
 */
export type Way = 'kubelet' | 'ahead' | { readonly within: NodeSet | undefined };

/** A pod as it is placed in some way. */
export interface Trial<Placed> {
  readonly placed: Placed;
  readonly score: Score;
}

export interface TrialGround<Placed> {
  readonly topology: Topology;
  /** undefined: it is refused. */
  readonly attempt: (way: Way) => Trial<Placed> | undefined;
  /** Its containers are aligned one by one. */
  readonly hasSeveral: boolean;
  readonly hasInit: boolean;
  /** What is offered for the pod as a whole. */
  readonly offered: () => readonly HintFamily[];
  /** By position of the node: how much is free on it. */
  readonly rooms: () => readonly number[];
}

/** Nodes that are chosen jointly win a tie; undefined: it is refused in any way. */
export function bestTrial<Placed>(ground: TrialGround<Placed>): Trial<Placed> | undefined {
  const { attempt, hasSeveral, hasInit } = ground;
  // Of one container, or of a pod that is aligned as a whole, the choice itself is the best.
  let best = attempt({ within: undefined });
  if (hasSeveral && !isDone(best)) best = bestWithin(ground, best);
  if (isDone(best)) return best;
  best = betterOf(best, attempt('kubelet'));
  // That is for fewer nodes in all, and may take more for some container.
  return hasInit ? betterOf(best, attempt('ahead')) : best;
}

const isDone = (trial: Trial<unknown> | undefined) => trial !== undefined && isBest(trial.score);

/** The first of those that are as good. */
function betterOf<T extends Trial<unknown>>(one: T | undefined, other: T | undefined): T | undefined {
  if (!one || !other) return one ?? other;
  return isBetter(other.score, one.score) ? other : one;
}

// Sets of nodes that the pod is tried on.
const MOST_SETS = 64;

// Containers one by one take what is best for each; kept to some nodes, they share these.
function bestWithin<Placed>(ground: TrialGround<Placed>, first: Trial<Placed> | undefined) {
  const { topology, attempt } = ground;
  let best = first;
  for (const within of setsFor(ground)) {
    if (best && cannotWin(best.score, within.size, distanceOf(topology, within))) break;
    best = betterOf(best, attempt({ within }));
  }
  return best;
}

// Sets come narrow ones first, and near ones first among these. A pod can be on fewer nodes than it is
// kept to: then it was tried on those.
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
