// Search: the repacking for a request that is rejected under the CPU policy `dynamic`. Pure.
import { movablePods } from '../../account/moves/movable-pods.js';
import type { MoveTime } from '../../account/moves/move-steps.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import type { Question } from '../question.js';
import { type NoRepacking, type Repacking, type RepackLimits, repack } from './repacking.js';

// On a machine with eight NUMA nodes, all pairs of moves take the core the time of one decision.
const LIMITS: RepackLimits = { maxMoves: 2, budget: 200 };

/** `isCandidate`: true if a grant that may move now may also be asked. */
export function searchMoves(
  question: Question,
  time: MoveTime,
  isCandidate: (pod: PodAssignment) => boolean = () => true,
): Repacking | NoRepacking {
  return repack(question, movablePods(question.state.pods, time).filter(isCandidate), LIMITS);
}
