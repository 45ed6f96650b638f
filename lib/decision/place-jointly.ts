// PlaceJointly: places a pod on NUMA nodes chosen for CPUs, memory, hugepages and devices together,
// for the whole pod. Pure, except for custom hint providers.
import { unlessRefusal } from '../base/refusal.js';
import type { NodeSet } from '../machine/cpu-set.js';
import { MAX_HINT_NODES } from '../machine/hint-masks.js';
import type { HintFamily } from '../machine/hints.js';
import type { Draft } from './draft/draft.js';
import { roomsOf } from './joint/joint-rules.js';
import { MOST_SETS, offeredSets } from './joint/nodes-ahead.js';
import { distanceOf, isBest, isBetter, type Score, scoreOf } from './joint/score.js';
import { nodesOfContainer, type Progress } from './progress.js';
import { type Question, undo } from './question.js';

/** The steps of a decision that this one builds on. */
export interface Steps {
  /**
   * Places the whole pod by `joint` of the progress. `isAhead`: places init containers with the
   * whole pod in view.
   * @throws Refusal
   */
  readonly place: (progress: Progress, isAhead: boolean) => void;
  /** The hints offered for the pod as a whole. */
  readonly offered: (progress: Progress) => readonly HintFamily[];
}

/** A pod as one way places it. */
interface Trial {
  readonly placed: Progress;
  readonly score: Score;
}

/**
 * `kubelet`: as the kubelet, container by container; `ahead`: the same, with init containers placed
 * for the whole pod; or a joint choice within these nodes, undefined for all.
 */
type Way = 'kubelet' | 'ahead' | { readonly within: NodeSet | undefined };

/** True if the request's NUMA nodes are chosen jointly. */
export function isJoint({ request: { placement }, topology, providers }: Question): boolean {
  if (placement.nodeChoice !== 'joint' || topology.nodes.length > MAX_HINT_NODES) return false;
  // Under `none`, custom providers are not asked.
  return placement.topologyPolicy !== 'none' || providers.length === 0;
}

/**
 * Places the pod as the kubelet would, unless a joint choice needs fewer or nearer nodes, or
 * equally good ones.
 * @throws Refusal if the kubelet would refuse the pod too
 */
export function placeJointly(progress: Progress, steps: Steps): void {
  const best = progress.question.providers.length > 0 ? onlyTrial(progress, steps) : bestOf(progress, steps);
  if (best) Object.assign(progress, best.placed);
  // Throws the kubelet's reason.
  else steps.place(progress, false);
}

// Undefined if the pod is refused.
function attempt(begun: Progress, way: Way, { place }: Steps): Trial | undefined {
  const placed: Progress =
    typeof way === 'string'
      ? { ...begun, joint: undefined, draft: asKubelet(begun.draft) }
      : { ...begun, joint: way };
  return unlessRefusal(() => {
    place(placed, way === 'ahead');
    const each = placed.allocations.map((allocation) => nodesOfContainer(placed, allocation));
    return { placed, score: scoreOf(placed.draft.topology, each) };
  });
}

// The kubelet's way takes the CPUs that the kubelet takes.
const asKubelet = (draft: Draft): Draft => ({
  ...draft,
  placement: { ...draft.placement, nodeChoice: 'kubelet' },
});

// Allocations of custom providers cannot be compared, only given back.
function onlyTrial(begun: Progress, steps: Steps): Trial | undefined {
  const trial = attempt(begun, { within: undefined }, steps);
  if (trial) return trial;
  const failure = undo(begun.question);
  if (failure !== undefined) throw failure;
  return undefined;
}

// A joint choice wins a tie.
function bestOf(begun: Progress, steps: Steps): Trial | undefined {
  const { request, resized } = begun.question;
  const { containers } = request.pod;
  // For one container, or a pod aligned as a whole, the joint choice is the best already.
  const isOne = request.placement.scope !== 'container' || containers.length === 1 || resized;
  const first = attempt(begun, { within: undefined }, steps);
  const best = isOne || isDone(first) ? first : bestWithin(begun, first, steps);
  if (isDone(best)) return best;
  const better = betterOf(best, attempt(begun, 'kubelet', steps));
  // This way needs the fewest nodes in all, but perhaps more for one container.
  return containers[0]!.kind === 'app' ? better : betterOf(better, attempt(begun, 'ahead', steps));
}

const isDone = (trial: Trial | undefined) => trial !== undefined && isBest(trial.score);

/** Returns the first if both are equally good. */
function betterOf(one: Trial | undefined, other: Trial | undefined): Trial | undefined {
  if (!one || !other) return one ?? other;
  return isBetter(other.score, one.score) ? other : one;
}

// Container by container, each gets its own best nodes. Restricted to a set, they share its nodes.
function bestWithin(begun: Progress, first: Trial | undefined, steps: Steps): Trial | undefined {
  let best = first;
  for (const { nodes, apart } of setsFor(begun, steps)) {
    if (best && cannotWin(best.score, nodes.size, apart)) break;
    best = betterOf(best, attempt(begun, { within: nodes }, steps));
  }
  return best;
}

// Narrow sets come first, and near ones first among these. A pod may need fewer nodes than the set
// has; then it was tried on those.
function cannotWin({ placed, ofContainers, ofPod, podApart }: Score, size: number, apart: number): boolean {
  return ofContainers === placed && (ofPod < size || (ofPod === size && podApart <= apart));
}

function setsFor(begun: Progress, { offered }: Steps) {
  const { topology } = begun.draft;
  const free = roomsOf(begun.draft);
  const roomOf = (nodes: NodeSet) =>
    [...nodes].reduce((sum, node) => sum + free[topology.numaNodes.indexOf(node)]!, 0);
  return offeredSets(offered(begun))
    .map((nodes) => ({ nodes, apart: distanceOf(topology, nodes), room: roomOf(nodes) }))
    .sort((a, b) => a.nodes.size - b.nodes.size || a.apart - b.apart || a.room - b.room)
    .slice(0, MOST_SETS);
}
