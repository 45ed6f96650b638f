// MovedRoom: makes room for a request under the CPU policy `dynamic`. Asks consenting grants to
// move, one after the other. Their room is kept until the request is admitted or gives it back.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { isMoving } from '../account/pod-holdings.js';
import { findGrant } from '../admission/grants/held-grant.js';
import { recordedState } from '../admission/on-record.js';
import type { RoomSource } from '../admission/room.js';
import type { Site } from '../admission/site.js';
import { moveTime } from '../admission/transact.js';
import { isPlaceholder } from '../decision/changes/placeholder.js';
import { type NoRepacking, searchMoves } from '../decision/changes/repacking.js';
import { reportOf, withReport } from '../decision/changes/repacking-report.js';
import type { Question } from '../decision/question.js';
import type { Rejection } from '../decision/rejection.js';
import { until } from '../state/until.js';
import { AskedGrants } from './asked-grants.js';
import { giveBackRoom } from './move-grant.js';

// How long a request waits for moves under way for other requests.
const OTHERS_MS = 10_000;

// Reasons that may pass when moves for other requests end: until then a grant holds two places, and
// cannot be asked.
const PASSING: readonly NoRepacking['reason'][] = ['grants', 'sum'];

export class MovedRoom implements RoomSource {
  readonly #uid: string;
  readonly #site: Site;
  readonly #signal: AbortSignal | undefined;
  readonly #askedGrants = new AskedGrants();
  // The state in which no moves help.
  #none: { readonly state: Assignments; readonly rejection: Rejection } | undefined;

  constructor(site: Site, uid: string, signal: AbortSignal | undefined) {
    this.#site = site;
    this.#uid = uid;
    this.#signal = signal;
  }

  async make(shortage: Question, rejection: Rejection): Promise<Rejection | undefined> {
    if (this.#none?.state === shortage.state) return this.#none.rejection;
    const { topology } = this.#site;
    const recorded = recordedState(this.#site);
    const mayBeAsked = (pod: PodAssignment) =>
      findGrant(recorded, pod) !== undefined && this.#askedGrants.mayAsk(pod);
    const answer = searchMoves(shortage, moveTime(), mayBeAsked);
    if (answer.isFound) {
      const request = { for: this.#uid, signal: this.#signal };
      for (const move of answer.moves) if (!(await this.#askedGrants.ask(this.#site, move, request))) break;
      return undefined;
    }
    if (PASSING.includes(answer.reason) && (await this.#othersAreDone(shortage.state))) return undefined;
    const rejected = withReport(rejection, reportOf(topology, answer, this.#askedGrants.unmoved));
    this.#none = { state: shortage.state, rejection: rejected };
    return rejected;
  }

  /**
   * Waits for moves that other requests have under way: afterwards their grants may have left room,
   * or may be asked. False if there were none, or they took too long. Gives back its kept room
   * first, so that two requests never wait for each other.
   */
  async #othersAreDone({ pods }: Assignments): Promise<boolean> {
    const { ledger } = this.#site;
    const { owners } = ledger;
    const isOthers = (pod: PodAssignment) =>
      (isMoving(pod) && pod.upcoming.move.for !== this.#uid && owners.isProcessAlive(pod.upcoming.by)) ||
      (isPlaceholder(pod) && pod.uid !== this.#uid && owners.isAlive(pod.owner));
    const look = () => (recordedState(this.#site).pods.some(isOthers) ? undefined : true);
    if (!pods.some(isOthers)) return false;
    await giveBackRoom(this.#site, this.#uid);
    const limit = AbortSignal.timeout(OTHERS_MS);
    try {
      return await until(ledger, this.#signal ? AbortSignal.any([this.#signal, limit]) : limit, look);
    } catch (error) {
      this.#signal?.throwIfAborted();
      if (!limit.aborted) throw error;
      return false;
    }
  }
}
