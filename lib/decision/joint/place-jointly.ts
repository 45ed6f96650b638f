// PlaceJointly: a pod on NUMA nodes that are chosen over CPUs, memory, hugepages and devices together,
// with the whole pod in sight. Pure, but for what custom hint providers do.
import { Refusal } from '../../base/refusal.js';
import type { NodeSet } from '../../machine/cpu-set.js';
import { MAX_HINT_NODES } from '../../machine/hint-masks.js';
import type { HintFamily } from '../../machine/hints.js';
import type { Progress } from '../progress.js';
import { type Question, undo } from '../question.js';
import { roomsOf } from './rooms.js';
import { distanceOf, isBest, isBetter, type Score, scoreOf } from './score.js';

/** Parts of the decision that come after this one. */
export interface Steps {
  /**
   * Places the whole pod, as `joint` of the progress says; `isAhead`: init containers with the whole
   * pod in sight.
   * @throws Refusal
   */
  readonly place: (progress: Progress, isAhead: boolean) => void;
  /** What is offered for the pod as a whole. */
  readonly offered: (progress: Progress) => readonly HintFamily[];
}

/** Whether the nodes of a request are chosen so. */
export function isJoint({ request: { placement }, topology, providers }: Question): boolean {
  if (placement.choice !== 'joint' || topology.nodes.length > MAX_HINT_NODES) return false;
  // Under `none` nobody asks custom providers.
  return placement.topologyPolicy !== 'none' || providers.length === 0;
}

interface Trial {
  readonly progress: Progress;
  readonly score: Score;
}

/**
 * Places the pod where the kubelet would, unless nodes that are chosen jointly are fewer or nearer, or
 * as few and as near. @throws Refusal where the kubelet would not admit it either
 */
export function placeJointly(progress: Progress, steps: Steps): void {
  const best =
    progress.question.providers.length > 0 ? onlyTrial(progress, steps) : bestTrial(progress, steps);
  if (best) Object.assign(progress, best.progress);
  // It says why, as the kubelet says it.
  else steps.place(progress, false);
}

function attempt(
  begun: Progress,
  joint: Progress['joint'],
  { place }: Steps,
  isAhead = false,
): Trial | undefined {
  const progress = { ...begun, joint };
  try {
    place(progress, isAhead);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
  return { progress, score: scoreOf(progress) };
}

// What custom providers allocate cannot be compared; it can be given back.
function onlyTrial(begun: Progress, steps: Steps): Trial | undefined {
  const trial = attempt(begun, { within: undefined }, steps);
  if (trial) return trial;
  const failure = undo(begun.question);
  if (failure !== undefined) throw failure;
  return undefined;
}

function bestTrial(begun: Progress, steps: Steps): Trial | undefined {
  let best = attempt(begun, { within: undefined }, steps);
  if (best && isBest(best.score)) return best;
  if (hasSeveral(begun)) best = bestWithin(begun, best, steps);
  if (best && isBest(best.score)) return best;
  best = betterOf(best, attempt(begun, undefined, steps));
  // That is for fewer nodes in all, and may take more for some container.
  const hasInit = begun.question.request.pod.containers[0]!.kind !== 'app';
  return hasInit ? betterOf(best, attempt(begun, undefined, steps, true)) : best;
}

/** The first of those that are as good. */
function betterOf(one: Trial | undefined, other: Trial | undefined): Trial | undefined {
  if (!one || !other) return one ?? other;
  return isBetter(other.score, one.score) ? other : one;
}

// Of one container, or of a pod that is aligned as a whole, the choice itself is the best.
function hasSeveral({ question: { request, resized } }: Progress): boolean {
  const { pod, placement } = request;
  return placement.scope === 'container' && pod.containers.length > 1 && !resized;
}

// Sets of nodes that the pod is tried on.
const MOST_SETS = 64;

// Containers one by one take what is best for each; kept to some nodes, they share these.
function bestWithin(begun: Progress, first: Trial | undefined, steps: Steps): Trial | undefined {
  const { topology } = begun.draft;
  let best = first;
  for (const within of setsFor(begun, steps)) {
    if (best && cannotWin(best.score, within.size, distanceOf(topology, within))) break;
    best = betterOf(best, attempt(begun, { within }, steps));
  }
  return best;
}

// Sets come narrow ones first, and near ones first among these. A pod can be on fewer nodes than it is
// kept to: then it was tried on those.
function cannotWin({ placed, ofContainers, ofPod, podApart }: Score, size: number, apart: number): boolean {
  return ofContainers === placed && (ofPod < size || (ofPod === size && podApart <= apart));
}

function setsFor(begun: Progress, { offered }: Steps): readonly NodeSet[] {
  const { topology } = begun.draft;
  const sets = new Map<string, NodeSet>();
  for (const family of offered(begun))
    for (const { nodes } of family.first(MOST_SETS)) if (nodes) sets.set(nodes.toString(), nodes);
  const rooms = roomsOf(begun.draft);
  const roomOf = (nodes: NodeSet) =>
    [...nodes].reduce((sum, node) => sum + rooms[topology.numaNodes.indexOf(node)]!, 0);
  return [...sets.values()]
    .map((nodes) => ({ nodes, apart: distanceOf(topology, nodes), room: roomOf(nodes) }))
    .sort((a, b) => a.nodes.size - b.nodes.size || a.apart - b.apart || a.room - b.room)
    .slice(0, MOST_SETS)
    .map(({ nodes }) => nodes);
}
