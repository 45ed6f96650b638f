// AdmissionError: the error that a rejected request throws.
import { type ErrorDetails, NumalignError } from '../base/errors.js';
import type { RejectionCode } from '../base/refusal.js';
import type { RepackingReport } from '../decision/changes/repacking-report.js';
import type { Explanation } from '../decision/explanation.js';
import type { Rejection } from '../decision/rejection.js';

declare module '../base/errors.js' {
  interface ErrorDetails {
    /** Of a rejection: what the request asks for, what is free, and which grants hold the rest. */
    explanation?: Explanation;
    /** Of a rejection under the policy `dynamic`: the moves that would admit the request. */
    repacking?: RepackingReport;
  }
}

/**
 * A request is not admitted: {@link Manager.acquire}, {@link Manager.admit} and
 * {@link Grant.resize} throw it. `rejection` says why; `details` has the same facts.
 */
export class AdmissionError extends NumalignError {
  /** The code of the rejection. */
  declare readonly code: RejectionCode;
  /** `reason`, `explanation`, `holders`, `reserved`, and the facts of the code. */
  declare readonly details: Readonly<ErrorDetails & Pick<Rejection, 'reason' | 'holders' | 'reserved'>> & {
    readonly explanation: Explanation;
  };
  /** Why the request is not admitted. */
  declare readonly rejection: Rejection;

  constructor(rejection: Rejection) {
    const { code, message, facts, reason, reserved, holders, explanation, cause, rollback } = rejection;
    super(code, message, {
      ...facts,
      reason,
      reserved,
      holders,
      explanation,
      cause,
      ...(rollback !== undefined && { rollback }),
    });
    // Not enumerable: a printed error would repeat its details.
    Object.defineProperty(this, 'rejection', { value: rejection });
  }

  /**
   * Whether there is no room, so that a release can change the answer. False if the pod contradicts
   * itself or a callback failed.
   */
  get isShortage(): boolean {
    return this.rejection.isShortage;
  }
}
AdmissionError.prototype.name = 'AdmissionError';
