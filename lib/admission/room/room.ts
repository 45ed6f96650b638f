// Room: what others give up for a request that is rejected. Who makes it is not known here.
import type { Question } from '../../decision/question.js';
import type { Rejection } from '../../decision/rejection.js';

/** A request that is not admitted. */
export interface Rejected {
  readonly rejection: Rejection;
  /** What was asked, where more room would change the answer. */
  readonly shortage?: Question | undefined;
}

/** A way to make room. */
export interface RoomSource {
  /**
   * undefined: it is worth another attempt. Else the rejection, which says why there is no more room.
   * @throws the signal's reason, the ledger's errors
   */
  make(shortage: Question, rejection: Rejection): Promise<Rejection | undefined>;
}

/** Makes room for one request. */
export interface Room extends RoomSource {
  /** By which what is kept for the request is on record. */
  readonly uid: string;
  /** Gives back what is kept for the request, if anything is. Never throws. */
  giveBack(): Promise<void>;
}

// Others may take each time what was free beside what is kept.
const MOST_ATTEMPTS = 16;

export const isRejected = <T extends object | undefined>(answer: T | Rejected): answer is Rejected =>
  answer !== undefined && 'rejection' in answer;

/** Attempts, and where that fails makes room and attempts again, a number of times. */
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
