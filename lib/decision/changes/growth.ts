// Growth: how an elastic grant grows, into free CPUs or into CPUs that others have above their
// share. Pure.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { isSettled, poolOf } from '../../account/pod-holdings.js';
import type { ResizeFacts } from '../resized-pod.js';
import { type ElasticPod, elasticGrant, elasticPods, elasticSize, elasticView } from './elastic-grants.js';
import { type ElasticGrant, elasticTargets, type Shares } from './elastic-targets.js';
import { shrinksFor } from './shrinks.js';

/** The grant with as many CPUs as it can have now, at most `most`; undefined if it cannot grow. */
function largest(input: ResizeFacts, pod: ElasticPod, most: number): PodAssignment | undefined {
  const { cpus } = elasticGrant(pod);
  for (let count = most; count > cpus; count--) {
    const resized = elasticSize(input, pod, count);
    if (resized) return resized.pod;
  }
  return undefined;
}

/**
 * The grant grown into its fair share of the free CPUs; undefined if it cannot grow. CPUs that
 * other grants cannot take, because their policies refuse them, are left to the rest; so are CPUs
 * of grants that are no longer awaited.
 */
export function growthOf(
  input: ResizeFacts,
  pod: ElasticPod,
  isAwaited: (pod: ElasticPod) => boolean = () => true,
): PodAssignment | undefined {
  const { state, present } = input;
  const { grants, spare } = elasticView(state, present, poolOf(pod));
  if (spare === 0 || !isSettled(pod)) return undefined;
  const pods = new Map(elasticPods(state).map((each) => [each.uid, each]));
  for (let open = grants; ; ) {
    const targets = elasticTargets(open, { spare });
    if (!targets) return undefined;
    const growing = open.filter(({ uid, cpus }) => targets.get(uid)! > cpus);
    if (growing.some(({ uid }) => uid === pod.uid)) {
      const grown = largest(input, pod, targets.get(pod.uid)!);
      if (grown) return grown;
    }
    const stuck = new Set(
      growing
        .filter(({ uid }) => {
          const each = pods.get(uid)!;
          // Where its process may be is not known here.
          const isRefused = () =>
            isSettled(each) && !largest({ ...input, within: undefined }, each, targets.get(uid)!);
          return uid === pod.uid || isRefused() || !isAwaited(each);
        })
        .map(({ uid }) => uid),
    );
    if (stuck.size === 0 || stuck.has(pod.uid)) return undefined;
    open = open.map((each) => (stuck.has(each.uid) ? { ...each, max: each.cpus } : each));
  }
}

/** The CPUs that a grant asks of others. */
export interface GrowthRequest {
  /** The number of CPUs that it will have. */
  readonly cpus: number;
  /** The other grants after they have shrunk. */
  readonly shrinks: readonly PodAssignment[];
}

/**
 * The request of a grant below its share to grants above theirs; undefined if there is none.
 * `mayAsk`: true if the owner of a grant may be asked.
 */
export function growthRequest(
  input: ResizeFacts,
  pod: ElasticPod,
  mayAsk: (pod: ElasticPod) => boolean,
): GrowthRequest | undefined {
  const { state, present } = input;
  const { grants, spare } = elasticView(state, present, poolOf(pod));
  const targets = elasticTargets(grants, { spare });
  if (!targets || !isSettled(pod)) return undefined;
  const givers = giversAbove(state, grants, targets, mayAsk);
  const { cpus: now } = elasticGrant(pod);
  for (let cpus = targets.get(pod.uid)!; givers.length > 0 && cpus > now; cpus--) {
    const shrinks = shrinksFor(input, {
      givers,
      missing: cpus - now - spare,
      isMet: (next) => elasticSize({ ...input, state: next }, pod, cpus) !== undefined,
    });
    if (shrinks) return { cpus, shrinks };
  }
  return undefined;
}

function giversAbove(
  state: ResizeFacts['state'],
  grants: readonly ElasticGrant[],
  targets: Shares,
  mayAsk: (pod: ElasticPod) => boolean,
) {
  const above = new Set(grants.filter(({ uid, cpus }) => targets.get(uid)! < cpus).map(({ uid }) => uid));
  return elasticPods(state)
    .filter((each) => above.has(each.uid) && isSettled(each) && mayAsk(each))
    .map((each) => ({ pod: each, least: targets.get(each.uid)! }));
}
