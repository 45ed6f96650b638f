// AdmissionError: a rejection, as callers of numalign get it.
import { type ErrorDetails, NumalignError } from '../base/errors.js';
import type { RejectionCode } from '../base/refusal.js';
import type { Explanation } from '../decision/explanation.js';
import type { Rejection } from '../decision/rejection.js';

/** A request is not admitted. `rejection` says why; `details` has the same by name. */
export class AdmissionError extends NumalignError {
  declare readonly code: RejectionCode;
  declare readonly details: Readonly<ErrorDetails & Pick<Rejection, 'reason' | 'holders' | 'reserved'>> & {
    readonly explanation: Explanation;
  };
  declare readonly rejection: Rejection;

  constructor(rejection: Rejection) {
    const { code, message, facts, reason, reserved, holders, explanation, cause, rollback } = rejection;
    super(code, message, {
      ...facts,
      ...{ reason, reserved, holders, explanation, cause },
      ...(rollback !== undefined && { rollback }),
    });
    // Not listed: it would say once more what the details say.
    Object.defineProperty(this, 'rejection', { value: rejection });
  }

  /**
   * Whether there is no room: a release by somebody else can change the answer. False where a
   * callback could not choose.
   */
  get isShortage(): boolean {
    return this.rejection.isShortage;
  }
}
AdmissionError.prototype.name = 'AdmissionError';
