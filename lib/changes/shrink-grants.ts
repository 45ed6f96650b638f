// Shrinks grants to make room for a request: all at once, each by its owner. The room is kept for
// the request.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { isSettled, runningCpus } from '../account/pod-holdings.js';
import type { Host } from '../admission/host.js';
import { livingState } from '../admission/on-record.js';
import type { MakeRoom } from '../admission/room.js';
import { NumalignError } from '../base/errors.js';
import { anySignal } from '../base/notices/any-signal.js';
import { type ElasticPod, elasticGrant, elasticPods } from '../decision/changes/elastic-grants.js';
import { roomByShrinking } from '../decision/changes/shrinks.js';
import type { ResizeFacts } from '../decision/resized-pod.js';
import { until } from '../state/until.js';
import { isPassing, noticeMsOf } from './answer.js';
import { type MoveRequest, moveGrant } from './move-grant.js';

/** What a decision about an elastic grant is made on. */
export const resizeInput = ({ topology, resources }: Host, state: Assignments): ResizeFacts => ({
  topology,
  resources,
  state,
  present: cpusNow(topology, state.pods),
});

const LATER = ['ERR_GRANT_BUSY', 'ERR_UNKNOWN_GRANT'];

const isLater = (error: NumalignError) => LATER.includes(error.code) || isPassing(error);

/**
 * Resolves once each grant has shrunk, or has failed to. Returns the uids of the grants whose
 * owners refuse or do not answer. `pods`: the grants after shrinking.
 * @throws the signal's reason; any error that is not an answer about one grant
 */
export async function shrinkGrants(
  host: Host,
  pods: readonly PodAssignment[],
  request: MoveRequest,
): Promise<readonly string[]> {
  const shrinks = pods.map((pod) => moveGrant(host, pod.uid, pod, request));
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
 * Waits until no change is under way for any grant that could make room, at most for the longest
 * notice of these grants. True if a grant that was being changed in `before` may make room now.
 */
export async function settledGrants(
  host: Host,
  before: Assignments,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const couldGive = (pod: ElasticPod) =>
    Math.max(runningCpus(pod).size, elasticGrant(pod).cpus) > pod.elastic.min;
  const unsettled = (state = livingState(host)) =>
    elasticPods(state).filter((pod) => !isSettled(pod) && couldGive(pod));
  const first = unsettled(before);
  if (first.length === 0) return false;
  const notice = AbortSignal.timeout(Math.max(...first.map(noticeMsOf)));
  const either = signal ? anySignal(signal, notice) : notice;
  try {
    return await until(host.ledger, either, () => unsettled().length === 0 || undefined);
  } catch (error) {
    signal?.throwIfAborted();
    if (!notice.aborted) throw error;
    const left = new Set(unsettled().map(({ uid }) => uid));
    return first.some(({ uid }) => !left.has(uid));
  }
}

/** Makes room for a rejected request by shrinking elastic grants. */
export function roomByShrunkGrants(host: Host, request: MoveRequest): MakeRoom {
  // Grants whose owners have refused, or have not answered.
  const refusals = new Set<string>();
  return async (shortage, rejection) => {
    const { state } = shortage;
    if (elasticPods(state).length === 0) return rejection;
    const shrinks = roomByShrinking(shortage, ({ uid }) => !refusals.has(uid));
    if (!shrinks) return (await settledGrants(host, state, request.signal)) ? undefined : rejection;
    const pods = shrinks.map(({ after }) => after);
    for (const uid of await shrinkGrants(host, pods, request)) refusals.add(uid);
    return undefined;
  };
}
