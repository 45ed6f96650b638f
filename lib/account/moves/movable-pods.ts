// The grants that may be moved now: they consent, and no other change of them is under way. Pure.
import type { PodAssignment } from '../pod-assignment.js';
import { podsThat } from '../pod-list-changes.js';
import { type MoveTime, recentMoves } from './move-steps.js';

const consenting = podsThat(({ movable }) => movable !== undefined);

/** The movable pods of a list. */
export function movablePods(pods: readonly PodAssignment[], time: MoveTime): readonly PodAssignment[] {
  return consenting(pods).filter((pod) => {
    const { upcoming, transfer, formerOwner } = pod;
    const { maxPerHour } = pod.movable!;
    const isBusy = upcoming !== null || transfer !== null || formerOwner !== null;
    return !isBusy && (maxPerHour === null || recentMoves(pod, time).length < maxPerHour);
  });
}
