// Transition: how a commit changes which CPUs are exclusive. Computed from two states.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf, memoryOf, nodesOf, runningCpus } from '../../account/pod-holdings.js';
import { podListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { exclusiveCpus } from '../../account/pools.js';

/** The change from one state to the next. */
export interface Transition {
  readonly before: Assignments;
  readonly next: Assignments;
  /** New grants with exclusive CPUs. */
  readonly added: readonly PodAssignment[];
  /** Grants that end, with exclusive CPUs or groups. */
  readonly ended: readonly PodAssignment[];
  /** True if CPUs become exclusive. */
  readonly isTaken: boolean;
  /** True if CPUs are given back to the shared pool. */
  readonly isGivenBack: boolean;
}

/** Identifies a grant: another one may later have the same uid. */
export const grantKey = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;

/** The grants of one state that another state does not have. */
export function podsNotIn({ pods }: Assignments, { pods: others }: Assignments): readonly PodAssignment[] {
  const changes = podListChanges(others, pods);
  const keys = new Set(podsBefore(changes).map(grantKey));
  return podsAfter(changes).filter((pod) => !keys.has(grantKey(pod)));
}

/** A state without some of its grants. */
export function without(state: Assignments, endedPods: readonly PodAssignment[]): Assignments {
  if (endedPods.length === 0) return state;
  return { ...state, pods: state.pods.filter((pod) => !endedPods.includes(pod)) };
}

/** Grants with groups that change their CPUs or memory nodes; `earlier`: the grant before. */
export function refits(before: Assignments, next: Assignments) {
  const changes = podListChanges(before.pods, next.pods);
  const old = new Map(podsBefore(changes).map((pod) => [pod.uid, pod]));
  return podsAfter(changes).flatMap((pod) => {
    const former = hasGroups(pod) ? old.get(pod.uid) : undefined;
    return former === undefined || isFit(former, pod) ? [] : [{ pod, earlier: former }];
  });
}

const isFit = (former: PodAssignment, pod: PodAssignment) =>
  runningCpus(former).equals(runningCpus(pod)) && nodesOf(memoryOf(former)).equals(nodesOf(memoryOf(pod)));

/** Grants that have CPUs in `next` that they did not have before. */
export function grownPods(before: Assignments, next: Assignments): readonly PodAssignment[] {
  const changes = podListChanges(before.pods, next.pods);
  const old = new Map(podsBefore(changes).map((pod) => [pod.uid, cpusOf(pod)]));
  return podsAfter(changes).filter((pod) => old.has(pod.uid) && !cpusOf(pod).isSubsetOf(old.get(pod.uid)!));
}

const hasGroups = ({ enforcement }: PodAssignment) => enforcement.target !== null;

/** Undefined if no CPU changes hands and no group changes its memory nodes. */
export function transitionOf(before: Assignments, next: Assignments): Transition | undefined {
  const added = podsNotIn(next, before).filter((pod) => !cpusOf(pod).isEmpty);
  const ended = podsNotIn(before, next).filter((pod) => !cpusOf(pod).isEmpty || hasGroups(pod));
  const [old, now] = [exclusiveCpus(before), exclusiveCpus(next)];
  const isSame = added.length === 0 && ended.length === 0 && old.equals(now);
  // The CPUs that a resize has announced are exclusive before the grant's groups have them.
  if (isSame && refits(before, next).length === 0) return undefined;
  const isTaken = added.length > 0 || !now.isSubsetOf(old);
  const isGivenBack = ended.length > 0 || !old.isSubsetOf(now);
  return { before, next, added, ended, isTaken, isGivenBack };
}
