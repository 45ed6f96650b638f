// PlaceJointly: a pod on NUMA nodes that are chosen over CPUs, memory, hugepages and devices together,
// with the whole pod in sight. Pure, but for what custom hint providers do.
import { Refusal } from '../base/refusal.js';
import { MAX_HINT_NODES } from '../machine/hint-masks.js';
import type { HintFamily } from '../machine/hints.js';
import { bestTrial, type Trial, type Way } from './joint/best-trial.js';
import { roomsOf } from './joint/rooms.js';
import { scoreOf } from './joint/score.js';
import { nodesOfContainer, type Progress } from './progress.js';
import { type Question, undo } from './question.js';

/** Parts of the decision that this one is made of. */
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

/** Whether the NUMA nodes of a request are chosen so. */
export function isJoint({ request: { placement }, topology, providers }: Question): boolean {
  if (placement.choice !== 'joint' || topology.nodes.length > MAX_HINT_NODES) return false;
  // Under `none` nobody asks custom providers.
  return placement.topologyPolicy !== 'none' || providers.length === 0;
}

/**
 * Places the pod where the kubelet would, unless nodes that are chosen jointly are fewer or nearer, or
 * as few and as near.
 * @throws Refusal where the kubelet would not admit it either
 */
export function placeJointly(progress: Progress, steps: Steps): void {
  const best = progress.question.providers.length > 0 ? onlyTrial(progress, steps) : bestOf(progress, steps);
  if (best) Object.assign(progress, best.placed);
  // It says why, as the kubelet says it.
  else steps.place(progress, false);
}

function attempt(begun: Progress, way: Way, { place }: Steps): Trial<Progress> | undefined {
  const placed: Progress = { ...begun, joint: typeof way === 'string' ? undefined : way };
  try {
    place(placed, way === 'ahead');
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
  const each = placed.given.map((given) => nodesOfContainer(placed, given));
  return { placed, score: scoreOf(placed.draft.topology, each) };
}

// What custom providers allocate cannot be compared; it can be given back.
function onlyTrial(begun: Progress, steps: Steps): Trial<Progress> | undefined {
  const trial = attempt(begun, { within: undefined }, steps);
  if (trial) return trial;
  const failure = undo(begun.question);
  if (failure !== undefined) throw failure;
  return undefined;
}

function bestOf(begun: Progress, steps: Steps): Trial<Progress> | undefined {
  const { request, resized, topology } = begun.question;
  const { containers } = request.pod;
  return bestTrial({
    topology,
    attempt: (way) => attempt(begun, way, steps),
    hasSeveral: request.placement.scope === 'container' && containers.length > 1 && !resized,
    hasInit: containers[0]!.kind !== 'app',
    offered: () => steps.offered(begun),
    rooms: () => roomsOf(begun.draft),
  });
}
