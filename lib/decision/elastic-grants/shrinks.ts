// Shrinks: chooses the CPUs that elastic grants give up to make room for another grant. Pure.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import { runningCpus } from '../../account/pod-holdings.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { elasticTargets } from '../elastic/elastic-targets.js';
import type { ResizeFacts } from '../resized-pod.js';
import { elasticSize } from './elastic-size.js';
import { type ElasticPod, elasticGrant } from './elastic-view.js';

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
  ground: ResizeFacts,
  { givers, missing, isMet }: ShrinkRequest,
): readonly PodAssignment[] | undefined {
  // The room is not enough even without these grants.
  if (!isMet(removePods(ground.state, new Set(givers.map(({ pod }) => pod.uid))))) return undefined;
  const most = givers.reduce((sum, { pod, least }) => sum + runningCpus(pod).size - least, 0);
  const { nodes } = ground.topology;
  const places = [undefined, ...(nodes.length > 1 ? nodes.map(({ cpus }) => cpus) : [])];
  let trials = 0;
  for (let count = Math.max(missing, 1); count <= most; count++) {
    for (const near of places) {
      if (++trials > MOST_TRIALS) return undefined;
      const shrunk = shrunkBy(ground, givers, count, near);
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
  ground: ResizeFacts,
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
  let { state } = ground;
  const pods: PodAssignment[] = [];
  for (const [i, { pod }] of givers.entries()) {
    const cpus = targets.get(pod.uid)!;
    if (cpus >= grants[i]!.cpus) continue;
    const resized = elasticSize({ ...ground, state }, pod, cpus, near);
    if (!resized) return undefined;
    state = resized.next;
    pods.push(resized.pod);
  }
  return { state, pods };
}
