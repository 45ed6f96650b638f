// Room by shrinking: chooses the elastic grants that shrink to make room for a request. Pure.
import { poolOf, runningCpus } from '../../account/pod-holdings.js';
import { freeCpus } from '../../account/pools.js';
import { podExclusiveCount } from '../cpus/cpu-choices.js';
import { decideWhether, POOLS } from '../decision.js';
import type { Question } from '../question.js';
import type { Move } from '../repacking/move.js';
import { type ElasticPod, elasticPods, isSettled } from './elastic-view.js';
import { shrinksFor } from './shrinks.js';

/**
 * The grants that shrink, each to a part of its CPUs; undefined if they cannot make enough room.
 * `mayGive`: true if a grant may be asked.
 */
export function roomByShrinking(
  question: Question,
  mayGive: (pod: ElasticPod) => boolean = () => true,
): readonly Move[] | undefined {
  const { topology, resources, state, present, request } = question;
  const pools = POOLS[request.placement.isolation];
  const givers = elasticPods(state)
    .filter((pod) => isSettled(pod) && pools.includes(poolOf(pod)) && mayGive(pod))
    .filter((pod) => runningCpus(pod).size > pod.elastic.min)
    .map((pod) => ({ pod, least: pod.elastic.min }));
  if (givers.length === 0) return undefined;
  const free = Math.max(...pools.map((pool) => freeCpus(state, present, pool).size));
  // Custom providers cannot allocate for a trial.
  const trial = { ...question, providers: [], dryRun: true };
  const shrunk = shrinksFor(
    { topology, resources, state, present },
    {
      givers,
      missing: podExclusiveCount(request.pod, request.placement) - free,
      isMet: (next) => decideWhether({ ...trial, state: next }) !== undefined,
    },
  );
  return shrunk?.map((after) => ({
    uid: after.uid,
    before: givers.find(({ pod }) => pod.uid === after.uid)!.pod,
    after,
  }));
}
