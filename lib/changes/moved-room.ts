// MovedRoom: the room that grants make for a request by moving.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { isMoving } from '../account/pod-holdings.js';
import { findGrant } from '../admission/grants/held-grant.js';
import type { Host } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import type { MakeRoom } from '../admission/room.js';
import { moveTime } from '../admission/transact.js';
import { anySignal } from '../base/notices/any-signal.js';
import { isPlaceholder } from '../decision/changes/placeholder.js';
import { type NoRepacking, searchMoves } from '../decision/changes/repacking.js';
import { reportOf, withReport } from '../decision/changes/repacking-report.js';
import type { Rejection } from '../decision/rejection.js';
import { until } from '../state/until.js';
import { AskedGrants } from './asked-grants.js';
import { giveBackRoom, type MoveRequest } from './move-grant.js';

// How long a request waits for moves under way for other requests.
const OTHERS_MS = 10_000;

// Reasons that may pass when moves for other requests end: until then a grant holds two places, and
// cannot be asked.
const PASSING: readonly NoRepacking['reason'][] = ['grants', 'sum'];

/**
 * Makes room for a request under the CPU policy `dynamic`. Asks consenting grants to move, one after
 * the other. Their room is kept until the request is admitted or gives it back.
 */
export function roomByMovedGrants(host: Host, request: MoveRequest): MakeRoom {
  const asked = new AskedGrants();
  // The state in which no moves help.
  let none: { readonly state: Assignments; readonly rejection: Rejection } | undefined;
  return async (shortage, rejection) => {
    const { state } = shortage;
    if (none?.state === state) return none.rejection;
    const recorded = recordedState(host);
    const mayBeAsked = (pod: PodAssignment) => findGrant(recorded, pod) !== undefined && asked.mayAsk(pod);
    const answer = searchMoves(shortage, moveTime(), mayBeAsked);
    if (answer.isFound) {
      for (const move of answer.moves) if (!(await asked.ask(host, move, request))) break;
      return undefined;
    }
    if (PASSING.includes(answer.reason) && (await othersAreDone(host, request, state))) return undefined;
    none = { state, rejection: withReport(rejection, reportOf(shortage, answer, asked.unmoved)) };
    return none.rejection;
  };
}

/**
 * Waits for moves that other requests have under way: afterwards their grants may have left room, or
 * may be asked. False if there were none, or they took too long. Gives back its kept room first, so
 * that two requests never wait for each other.
 */
async function othersAreDone(
  host: Host,
  { for: request, signal }: MoveRequest,
  { pods }: Assignments,
): Promise<boolean> {
  const { owners } = host.ledger;
  const isOthers = (pod: PodAssignment) =>
    (isMoving(pod) && pod.upcoming.move.for !== request && owners.isProcessAlive(pod.upcoming.by)) ||
    (isPlaceholder(pod) && pod.uid !== request && owners.isAlive(pod.owner));
  if (!pods.some(isOthers)) return false;
  await giveBackRoom(host, request);
  const limit = AbortSignal.timeout(OTHERS_MS);
  const look = () => (recordedState(host).pods.some(isOthers) ? undefined : true);
  try {
    return await until(host.ledger, signal ? anySignal(signal, limit) : limit, look);
  } catch (error) {
    signal?.throwIfAborted();
    if (!limit.aborted) throw error;
    return false;
  }
}
