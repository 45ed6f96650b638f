// Search: the repacking for a request that is rejected under the CPU policy `dynamic`. Pure.

import { movablePods } from '../../account/moves/movable-pods.js';
import type { MoveTime } from '../../account/moves/move-steps.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import type { Question } from '../question.js';
import { type NoRepacking, type Repacking, type RepackLimits, repack } from './repacking.js';

// In a decision's time: all pairs of moves on machines of eight NUMA nodes.
const LIMITS: RepackLimits = { maxMoves: 2, budget: 200 };

/** `isCandidate`: which of the grants may be asked, of those that may move now. */
export function searchMoves(
  question: Question,
  time: MoveTime,
  isCandidate: (pod: PodAssignment) => boolean = () => true,
): Repacking | NoRepacking {
  return repack(question, movablePods(question.state.pods, time).filter(isCandidate), LIMITS);
}
