// Shrinks: chooses the CPUs that elastic grants give up to make room for a request or for another
// grant. Pure.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import { isSettled, poolOf, runningCpus } from '../../account/pod-holdings.js';
import { freeCpus } from '../../account/pools.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { podExclusiveCount } from '../cpus/cpu-choices.js';
import { decideWhether, POOLS } from '../decision.js';
import type { Question } from '../question.js';
import type { ResizeFacts } from '../resized-pod.js';
import { type ElasticPod, elasticGrant, elasticPods, elasticSize } from './elastic-grants.js';
import { elasticTargets } from './elastic-targets.js';
import type { Move } from './move.js';

/** A grant that may give up CPUs, and the number that it keeps at least. */
export interface Giver {
  readonly pod: ElasticPod;
  readonly least: number;
}

/** The grants that can make room, and when there is enough. */
export interface ShrinkRequest {
  readonly givers: readonly Giver[];
  /** The least number of missing CPUs. */
  readonly missing: number;
  /** True if a state has enough room. */
  readonly isMet: (state: Assignments) => boolean;
}

// The most combinations of a number of CPUs and a NUMA node to try: each takes at least a decision.
const MOST_TRIALS = 512;

/**
 * The grants that shrink, after shrinking. They give up as few CPUs as possible: any by fair shares
 * if that makes enough room, otherwise CPUs of one NUMA node. Undefined if they cannot make enough
 * room.
 */
export function shrinksFor(
  input: ResizeFacts,
  { givers, missing, isMet }: ShrinkRequest,
): readonly PodAssignment[] | undefined {
  // The room is not enough even without these grants.
  if (!isMet(removePods(input.state, new Set(givers.map(({ pod }) => pod.uid))))) return undefined;
  const most = givers.reduce((sum, { pod, least }) => sum + runningCpus(pod).size - least, 0);
  const { nodes } = input.topology;
  const places = [undefined, ...(nodes.length > 1 ? nodes.map(({ cpus }) => cpus) : [])];
  let trials = 0;
  for (let count = Math.max(missing, 1); count <= most; count++) {
    for (const near of places) {
      if (++trials > MOST_TRIALS) return undefined;
      const shrunk = shrunkBy(input, givers, count, near);
      if (shrunk && isMet(shrunk.state)) return shrunk.pods;
    }
  }
  return undefined;
}

interface Shrunk {
  readonly state: Assignments;
  readonly pods: readonly PodAssignment[];
}

// The state after the grants have given up `count` CPUs. `near`: the only CPUs to give up.
function shrunkBy(
  input: ResizeFacts,
  givers: readonly Giver[],
  count: number,
  near: CpuSet | undefined,
): Shrunk | undefined {
  const grants = givers.map(({ pod, least }) => {
    const grant = elasticGrant(pod);
    const most = near ? runningCpus(pod).intersection(near).size : grant.cpus;
    return { ...grant, min: Math.max(least, grant.cpus - most) };
  });
  // Infinite slack, so that no grant grows at the expense of another.
  const targets = elasticTargets(grants, { spare: 0, demand: count }, Number.POSITIVE_INFINITY);
  if (!targets) return undefined;
  let { state } = input;
  const pods: PodAssignment[] = [];
  for (const [i, { pod }] of givers.entries()) {
    const cpus = targets.get(pod.uid)!;
    if (cpus >= grants[i]!.cpus) continue;
    const resized = elasticSize({ ...input, state }, pod, cpus, near);
    if (!resized) return undefined;
    state = resized.next;
    pods.push(resized.pod);
  }
  return { state, pods };
}

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
