// Growth: what a grant that grows by itself is to become, of what is free or of what others have above
// their share. Pure.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { poolOf } from '../../account/pod-holdings.js';
import { type ElasticGrant, elasticTargets } from '../elastic/elastic-targets.js';
import type { Shares } from '../elastic/fair-shares.js';
import type { ResizeGround } from '../resized-pod.js';
import { elasticSize } from './elastic-size.js';
import { type ElasticPod, elasticGrant, elasticPods, elasticView, isSettled } from './elastic-view.js';
import { shrinksFor } from './shrinks.js';

/** The most that a grant can have now, above what it has and at most `most`. */
function largest(ground: ResizeGround, pod: ElasticPod, most: number): PodAssignment | undefined {
  const { cpus } = elasticGrant(pod);
  for (let count = most; count > cpus; count--) {
    const resized = elasticSize(ground, pod, count);
    if (resized) return resized.pod;
  }
  return undefined;
}

/**
 * A grant as it is with what is free and its own by the rule. What others cannot take, whose policies
 * refuse it, is there for the rest; so is what others could take that are not awaited any more.
 * undefined: nothing is.
 */
export function growthOf(
  ground: ResizeGround,
  pod: ElasticPod,
  isAwaited: (pod: ElasticPod) => boolean = () => true,
): PodAssignment | undefined {
  const { state, present } = ground;
  const { grants, spare } = elasticView(state, present, poolOf(pod));
  if (spare === 0 || !isSettled(pod)) return undefined;
  const pods = new Map(elasticPods(state).map((each) => [each.uid, each]));
  for (let open = grants; ; ) {
    const targets = elasticTargets(open, { spare });
    if (!targets) return undefined;
    const growing = open.filter(({ uid, cpus }) => targets.get(uid)! > cpus);
    if (growing.some(({ uid }) => uid === pod.uid)) {
      const grown = largest(ground, pod, targets.get(pod.uid)!);
      if (grown) return grown;
    }
    const stuck = new Set(
      growing
        .filter(({ uid }) => {
          const each = pods.get(uid)!;
          const isRefused = () => isSettled(each) && !largest(ground, each, targets.get(uid)!);
          return uid === pod.uid || isRefused() || !isAwaited(each);
        })
        .map(({ uid }) => uid),
    );
    if (stuck.size === 0 || stuck.has(pod.uid)) return undefined;
    open = open.map((each) => (stuck.has(each.uid) ? { ...each, max: each.cpus } : each));
  }
}

/** What a grant asks others for. */
export interface GrowthRequest {
  /** How many CPUs it is to have. */
  readonly cpus: number;
  /** The others as they are then. */
  readonly shrinks: readonly PodAssignment[];
}

/**
 * What a grant below its share asks of those above theirs; undefined: nothing. `mayAsk`: whether the
 * owner of one is asked.
 */
export function growthRequest(
  ground: ResizeGround,
  pod: ElasticPod,
  mayAsk: (pod: ElasticPod) => boolean,
): GrowthRequest | undefined {
  const { state, present } = ground;
  const { grants, spare } = elasticView(state, present, poolOf(pod));
  const targets = elasticTargets(grants, { spare });
  if (!targets || !isSettled(pod)) return undefined;
  const givers = giversAbove(state, grants, targets, mayAsk);
  const { cpus: now } = elasticGrant(pod);
  for (let cpus = targets.get(pod.uid)!; givers.length > 0 && cpus > now; cpus--) {
    const shrinks = shrinksFor(ground, {
      givers,
      missing: cpus - now - spare,
      isMet: (next) => elasticSize({ ...ground, state: next }, pod, cpus) !== undefined,
    });
    if (shrinks) return { cpus, shrinks };
  }
  return undefined;
}

function giversAbove(
  state: ResizeGround['state'],
  grants: readonly ElasticGrant[],
  targets: Shares,
  mayAsk: (pod: ElasticPod) => boolean,
) {
  const above = new Set(grants.filter(({ uid, cpus }) => targets.get(uid)! < cpus).map(({ uid }) => uid));
  return elasticPods(state)
    .filter((each) => above.has(each.uid) && isSettled(each) && mayAsk(each))
    .map((each) => ({ pod: each, least: targets.get(each.uid)! }));
}
