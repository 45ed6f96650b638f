// PlacePod: places a pod as the kubelet does, or on NUMA nodes chosen for CPUs, memory, hugepages and
// devices together, for the whole pod. Pure, except for custom hint providers.
import { unlessRefusal } from '../base/refusal.js';
import type { NodeSet } from '../machine/cpu-set.js';
import { offeredForPod } from './alignment.js';
import type { Draft } from './draft/draft.js';
import { roomsOf } from './joint/joint-rules.js';
import { MOST_SETS, offeredSets } from './joint/nodes-ahead.js';
import { distanceOf, isBest, isBetter, type Score, scoreOf } from './joint/score.js';
import { placeOnce } from './place.js';
import { nodesOfContainer, type Progress } from './progress.js';
import { isJoint, undo } from './question.js';

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

/** Places all containers, on NUMA nodes that are chosen for each or jointly. @throws Refusal */
export function place(progress: Progress): void {
  const { question } = progress;
  if (isJoint(question)) placeJointly(progress);
  else placeOnce(progress, question.request.placement.initContainerLookahead);
}

/**
 * Places the pod as the kubelet would, unless a joint choice needs fewer or nearer nodes, or
 * equally good ones.
 * @throws Refusal if the kubelet would refuse the pod too
 */
function placeJointly(progress: Progress): void {
  const best = progress.question.providers.length > 0 ? onlyTrial(progress) : bestOf(progress);
  if (best) Object.assign(progress, best.placed);
  // Throws the kubelet's reason.
  else placeOnce(progress, false);
}

// Undefined if the pod is refused.
function attempt(begun: Progress, way: Way): Trial | undefined {
  const placed: Progress =
    typeof way === 'string'
      ? { ...begun, joint: undefined, draft: asKubelet(begun.draft) }
      : { ...begun, joint: way };
  return unlessRefusal(() => {
    placeOnce(placed, way === 'ahead');
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
function onlyTrial(begun: Progress): Trial | undefined {
  const trial = attempt(begun, { within: undefined });
  if (trial) return trial;
  const failure = undo(begun.question);
  if (failure !== undefined) throw failure;
  return undefined;
}

// A joint choice wins a tie.
function bestOf(begun: Progress): Trial | undefined {
  const { request, resized } = begun.question;
  const { containers } = request.pod;
  // For one container, or a pod aligned as a whole, the joint choice is the best already.
  const isOne = request.placement.scope !== 'container' || containers.length === 1 || resized;
  const first = attempt(begun, { within: undefined });
  const best = isOne || isDone(first) ? first : bestWithin(begun, first);
  if (isDone(best)) return best;
  const better = betterOf(best, attempt(begun, 'kubelet'));
  // This way needs the fewest nodes in all, but perhaps more for one container.
  return containers[0]!.kind === 'app' ? better : betterOf(better, attempt(begun, 'ahead'));
}

const isDone = (trial: Trial | undefined) => trial !== undefined && isBest(trial.score);

/** Returns the first if both are equally good. */
function betterOf(one: Trial | undefined, other: Trial | undefined): Trial | undefined {
  if (!one || !other) return one ?? other;
  return isBetter(other.score, one.score) ? other : one;
}

// Container by container, each gets its own best nodes. Restricted to a set, they share its nodes.
function bestWithin(begun: Progress, first: Trial | undefined): Trial | undefined {
  let best = first;
  for (const { nodes, apart } of setsFor(begun)) {
    if (best && cannotWin(best.score, nodes.size, apart)) break;
    best = betterOf(best, attempt(begun, { within: nodes }));
  }
  return best;
}

// Narrow sets come first, and near ones first among these. A pod may need fewer nodes than the set
// has; then it was tried on those.
function cannotWin({ placed, ofContainers, ofPod, podApart }: Score, size: number, apart: number): boolean {
  return ofContainers === placed && (ofPod < size || (ofPod === size && podApart <= apart));
}

function setsFor(begun: Progress) {
  const { topology } = begun.draft;
  const free = roomsOf(begun.draft);
  const roomOf = (nodes: NodeSet) =>
    [...nodes].reduce((sum, node) => sum + free[topology.numaNodes.indexOf(node)]!, 0);
  return offeredSets(offeredForPod(begun))
    .map((nodes) => ({ nodes, apart: distanceOf(topology, nodes), room: roomOf(nodes) }))
    .sort((a, b) => a.nodes.size - b.nodes.size || a.apart - b.apart || a.room - b.room)
    .slice(0, MOST_SETS);
}
