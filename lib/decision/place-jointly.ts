// PlaceJointly: places a pod on NUMA nodes chosen for CPUs, memory, hugepages and devices together,
// for the whole pod. Pure, except for custom hint providers.
import { Refusal } from '../base/refusal.js';
import { MAX_HINT_NODES } from '../machine/hint-masks.js';
import type { HintFamily } from '../machine/hints.js';
import type { Draft } from './cpus/draft.js';
import { bestTrial, type Trial, type Way } from './joint/best-trial.js';
import { roomsOf } from './joint/rooms.js';
import { scoreOf } from './joint/score.js';
import { type Progress, placesOf } from './progress.js';
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

/** True if the request's NUMA nodes are chosen jointly. */
export function isJoint({ request: { placement }, topology, providers }: Question): boolean {
  if (placement.choice !== 'joint' || topology.nodes.length > MAX_HINT_NODES) return false;
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

function attempt(begun: Progress, way: Way, { place }: Steps): Trial<Progress> | undefined {
  const placed: Progress =
    typeof way === 'string'
      ? { ...begun, joint: undefined, draft: asKubelet(begun.draft) }
      : { ...begun, joint: way };
  try {
    place(placed, way === 'ahead');
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
  const each = placed.allocations.map((allocation) => placesOf(placed, allocation));
  return { placed, score: scoreOf(placed.draft.topology, each) };
}

// The kubelet's way takes the CPUs that the kubelet takes.
const asKubelet = (draft: Draft): Draft => ({
  ...draft,
  placement: { ...draft.placement, choice: 'kubelet' },
});

// Allocations of custom providers cannot be compared, only given back.
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
