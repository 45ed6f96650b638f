// Room: what other grants give up for a rejected request. Its sources are implemented elsewhere.
import type { Question } from '../decision/question.js';
import type { Rejection } from '../decision/rejection.js';

/** A request that is not admitted. */
export interface Rejected {
  readonly rejection: Rejection;
  /** The question, if more room would change the answer. */
  readonly shortage?: Question | undefined;
}

/**
 * A way to make room. Resolves with undefined if another attempt is worthwhile; otherwise with the
 * rejection, which says why there is no more room.
 * @throws the signal's reason, the ledger's errors
 */
export type MakeRoom = (shortage: Question, rejection: Rejection) => Promise<Rejection | undefined>;

/** Makes room for one request. */
export interface Room {
  readonly make: MakeRoom;
  /** The uid of the placeholder that keeps the room for the request. */
  readonly uid: string;
  /** Gives back what is kept for the request, if anything is. Never throws. */
  giveBack(): Promise<void>;
}

// After each attempt, other requests may take CPUs that were free besides the kept ones.
const MOST_ATTEMPTS = 16;

export const isRejected = <T extends object | undefined>(answer: T | Rejected): answer is Rejected =>
  answer !== undefined && 'rejection' in answer;

/** Attempts, makes room after a rejection, and attempts again, up to a limit. */
export async function withRoom<T extends object | undefined>(
  room: Room | undefined,
  attempt: () => Promise<T | Rejected>,
): Promise<T | Rejected> {
  let hasRoom = false;
  try {
    for (let left = MOST_ATTEMPTS; ; left--) {
      const answer = await attempt();
      if (!room || !isRejected(answer) || !answer.shortage || left === 0) return answer;
      hasRoom = true;
      const rejection = await room.make(answer.shortage, answer.rejection);
      if (rejection) return { ...answer, rejection };
    }
  } finally {
    if (hasRoom) await room?.giveBack();
  }
}
