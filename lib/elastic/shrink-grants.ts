// Shrink: grants give up CPUs for somebody, all at once, each by its owner; what they give up is kept.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { runningCpus } from '../account/pod-holdings.js';
import type { Site } from '../admission/site.js';
import { NumalignError } from '../base/errors.js';
import {
  type ElasticPod,
  elasticGrant,
  elasticPods,
  isSettled,
} from '../decision/elastic-grants/elastic-view.js';
import { noticeMsOf } from '../moves/answer.js';
import { type MoveRequest, moveGrant } from '../moves/move-grant.js';
import { until } from '../state/until.js';
import { livingState } from './elastic-ground.js';

/** What becomes of it shows when it is looked at once more. */
const LATER = ['ERR_GRANT_BUSY', 'ERR_UNKNOWN_GRANT'];
const LATER_REASONS = ['no-room', 'ended', 'called-off'];

const isLater = ({ code, details }: NumalignError) =>
  LATER.includes(code) || LATER_REASONS.includes(String(details.reason));

/**
 * Resolves once each has shrunk, or does not. Answers the uids of those whose owners refuse, or do not
 * answer. `pods`: the grants as they are to be.
 * @throws what stands in the way of all of them; the signal's reason
 */
export async function shrinkGrants(
  site: Site,
  pods: readonly PodAssignment[],
  request: MoveRequest,
): Promise<readonly string[]> {
  const shrinks = pods.map((pod) => moveGrant(site, pod.uid, pod, request));
  const refused: string[] = [];
  for (const [i, { status, ...outcome }] of (await Promise.allSettled(shrinks)).entries()) {
    if (status === 'fulfilled') continue;
    request.signal?.throwIfAborted();
    const { reason } = outcome as PromiseRejectedResult;
    if (!(reason instanceof NumalignError)) throw reason;
    if (!isLater(reason)) refused.push(pods[i]!.uid);
  }
  return refused;
}

/**
 * Waits until nobody is about to change a grant that could make room, as long as the longest notice
 * of one is. Answers whether one could not by the state that was `seen`, and may now.
 */
export async function settledGrants(
  site: Site,
  seen: Assignments,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const couldGive = (pod: ElasticPod) =>
    Math.max(runningCpus(pod).size, elasticGrant(pod).cpus) > pod.elastic.min;
  const unsettled = (state = livingState(site)) =>
    elasticPods(state).filter((pod) => !isSettled(pod) && couldGive(pod));
  const first = unsettled(seen);
  if (first.length === 0) return false;
  const notice = AbortSignal.timeout(Math.max(...first.map(noticeMsOf)));
  const either = signal ? AbortSignal.any([signal, notice]) : notice;
  try {
    return await until(site.ledger, either, () => unsettled().length === 0 || undefined);
  } catch (error) {
    signal?.throwIfAborted();
    if (!notice.aborted) throw error;
    const left = new Set(unsettled().map(({ uid }) => uid));
    return first.some(({ uid }) => !left.has(uid));
  }
}
