// Shrinks: which grants give up how many of their CPUs, and which, so that there is room for somebody
// else. Pure.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import { runningCpus } from '../../account/pod-holdings.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { elasticTargets } from '../elastic/elastic-targets.js';
import type { ResizeGround } from '../resized-pod.js';
import { elasticSize } from './elastic-size.js';
import { type ElasticPod, elasticGrant } from './elastic-view.js';

/** A grant that may give up CPUs, down to a number of them. */
export interface Giver {
  readonly pod: ElasticPod;
  readonly least: number;
}

/** For whom. */
export interface ShrinkRequest {
  readonly givers: readonly Giver[];
  /** How many CPUs are missing at least. */
  readonly missing: number;
  /** Whether it has what it asks for in a state. */
  readonly isMet: (state: Assignments) => boolean;
}

// Of how many CPUs and NUMA nodes it is tried: each takes a decision or more.
const MOST_TRIALS = 512;

/**
 * The grants as they are once they have made room: with as few CPUs given up as will do, by the rule
 * wherever that helps, else those of one NUMA node. undefined: nothing that they may give up makes
 * enough room.
 */
export function shrinksFor(
  ground: ResizeGround,
  { givers, missing, isMet }: ShrinkRequest,
): readonly PodAssignment[] | undefined {
  // Not even without them.
  if (!isMet(removePods(ground.state, new Set(givers.map(({ pod }) => pod.uid))))) return undefined;
  const most = givers.reduce((sum, { pod, least }) => sum + runningCpus(pod).size - least, 0);
  const { nodes } = ground.topology;
  const places = [undefined, ...(nodes.length > 1 ? nodes.map(({ cpus }) => cpus) : [])];
  let trials = 0;
  for (let count = Math.max(missing, 1); count <= most; count++) {
    for (const near of places) {
      if (++trials > MOST_TRIALS) return undefined;
      const shrunk = givenUp(ground, givers, count, near);
      if (shrunk && isMet(shrunk.state)) return shrunk.pods;
    }
  }
  return undefined;
}

interface Shrunk {
  readonly state: Assignments;
  readonly pods: readonly PodAssignment[];
}

function givenUp(
  ground: ResizeGround,
  givers: readonly Giver[],
  count: number,
  near: CpuSet | undefined,
): Shrunk | undefined {
  const grants = givers.map(({ pod, least }) => {
    const grant = elasticGrant(pod);
    const most = near ? runningCpus(pod).intersection(near).size : grant.cpus;
    return { ...grant, min: Math.max(least, grant.cpus - most) };
  });
  // Nobody grows by that: as many change hands as are asked for.
  const targets = elasticTargets(grants, { spare: 0, asked: count }, Number.POSITIVE_INFINITY);
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
