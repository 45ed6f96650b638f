// AdmissionError: the error that a rejected request throws.
import type { ErrorDetails } from '../base/codes/error-details.js';
import { AnyError, type CodedError } from '../base/errors.js';
import type { RejectionCode } from '../base/refusal.js';
import type { RepackingReport } from '../decision/changes/repacking-report.js';
import type { Explanation } from '../decision/explanation.js';
import type { Rejection } from '../decision/rejection.js';

declare module '../base/codes/error-details.js' {
  interface ErrorDetails {
    /** Of a rejection: what the request asks for, what is free, and which grants hold the rest. */
    explanation?: Explanation;
    /** Of a rejection: all other grants, and pods of the kubelet, with exclusive CPUs. */
    holders?: Rejection['holders'];
    /** Of a rejection under the policy `dynamic`: the moves that would admit the request. */
    repacking?: RepackingReport;
  }
}

type Facts = Required<Pick<ErrorDetails, 'reason' | 'reserved' | 'holders' | 'explanation'>>;

/** What {@link AdmissionError} is for one code. */
interface RejectedError<Code extends RejectionCode> extends CodedError<Code> {
  /** `reason`, `explanation`, `holders`, `reserved`, and the facts of the code. */
  readonly details: CodedError<Code>['details'] & Readonly<Facts>;
  /** Why the request is not admitted. */
  readonly rejection: Rejection;
  /**
   * Whether there is no room, so that a release can change the answer. False if the pod contradicts
   * itself or a callback failed.
   */
  readonly isShortage: boolean;
}

/**
 * A request is not admitted: {@link Manager.acquire}, {@link Manager.admit} and
 * {@link Grant.resize} throw it. `rejection` says why; `details` has the same facts.
 */
export type AdmissionError<Code extends RejectionCode = RejectionCode> = Code extends RejectionCode
  ? RejectedError<Code>
  : never;

interface AdmissionErrorClass {
  readonly prototype: AdmissionError;
  [Symbol.hasInstance](value: unknown): value is AdmissionError;
  new (rejection: Rejection): AdmissionError;
}

class Rejected extends AnyError {
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

  get isShortage(): boolean {
    return this.rejection.isShortage;
  }
}
Rejected.prototype.name = 'AdmissionError';
Object.defineProperty(Rejected, 'name', { value: 'AdmissionError' });

export const AdmissionError = Rejected as unknown as AdmissionErrorClass;
