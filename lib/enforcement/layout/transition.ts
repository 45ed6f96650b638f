// Transition: what a commit changes about the CPUs that are exclusive. Computed from two states.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf, memoryOf, nodesOf, runningCpus } from '../../account/pod-holdings.js';
import { podListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { exclusiveCpus } from '../../account/pools.js';

/** From one state to the next. */
export interface Transition {
  readonly before: Assignments;
  readonly next: Assignments;
  /** New grants with exclusive CPUs. */
  readonly added: readonly PodAssignment[];
  /** Grants with exclusive CPUs or groups that end. */
  readonly ended: readonly PodAssignment[];
  /** CPUs become exclusive. */
  readonly isTaken: boolean;
  /** CPUs are given back to the shared pool. */
  readonly isGivenBack: boolean;
}

/** Another grant may have come under a uid. */
export const grantKey = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;

/** The grants of a state that another does not have. */
export function podsNotIn({ pods }: Assignments, { pods: others }: Assignments): readonly PodAssignment[] {
  const changes = podListChanges(others, pods);
  const known = new Set(podsBefore(changes).map(grantKey));
  return podsAfter(changes).filter((pod) => !known.has(grantKey(pod)));
}

/** A state without these of its grants. */
export function without(state: Assignments, ended: readonly PodAssignment[]): Assignments {
  if (ended.length === 0) return state;
  return { ...state, pods: state.pods.filter((pod) => !ended.includes(pod)) };
}

/** A grant with groups that is to run on other CPUs, or to have its memory on other nodes. */
export interface Refit {
  readonly pod: PodAssignment;
  /** As it was before. */
  readonly known: PodAssignment;
}

export function refits(before: Assignments, next: Assignments): readonly Refit[] {
  const changes = podListChanges(before.pods, next.pods);
  const old = new Map(podsBefore(changes).map((pod) => [pod.uid, pod]));
  return podsAfter(changes).flatMap((pod) => {
    const known = hasGroups(pod) ? old.get(pod.uid) : undefined;
    return known === undefined || isFit(known, pod) ? [] : [{ pod, known }];
  });
}

const isFit = (known: PodAssignment, pod: PodAssignment) =>
  runningCpus(known).equals(runningCpus(pod)) && nodesOf(memoryOf(known)).equals(nodesOf(memoryOf(pod)));

/** Grants that have CPUs in `next` that they have not before. */
export function grownPods(before: Assignments, next: Assignments): readonly PodAssignment[] {
  const changes = podListChanges(before.pods, next.pods);
  const old = new Map(podsBefore(changes).map((pod) => [pod.uid, cpusOf(pod)]));
  return podsAfter(changes).filter((pod) => old.has(pod.uid) && !cpusOf(pod).isSubsetOf(old.get(pod.uid)!));
}

const hasGroups = ({ enforcement }: PodAssignment) => enforcement.target !== null;

/** Undefined where no CPU changes hands, and no memory node of a group. */
export function transitionOf(before: Assignments, next: Assignments): Transition | undefined {
  const added = podsNotIn(next, before).filter((pod) => !cpusOf(pod).isEmpty);
  const ended = podsNotIn(before, next).filter((pod) => !cpusOf(pod).isEmpty || hasGroups(pod));
  const [old, now] = [exclusiveCpus(before), exclusiveCpus(next)];
  const isSame = added.length === 0 && ended.length === 0 && old.equals(now);
  // What a resize has announced is exclusive before the grant's groups have it.
  if (isSame && refits(before, next).length === 0) return undefined;
  const isTaken = added.length > 0 || !now.isSubsetOf(old);
  const isGivenBack = ended.length > 0 || !old.isSubsetOf(now);
  return { before, next, added, ended, isTaken, isGivenBack };
}
