// Refusal: the error with which a part of a decision says why a request cannot be met.

import type { AdmissionReason, RejectionFact } from './codes/admission-reasons.js';
import type { RejectionCodes } from './codes/rejection-codes.js';
import { AnyError, type ErrorCode, NumalignError, unless } from './errors.js';

export type { AdmissionReason };

const SHORTAGES = [
  'ERR_INSUFFICIENT_CPUS',
  'ERR_INSUFFICIENT_DEVICES',
  'ERR_INSUFFICIENT_MEMORY',
  'ERR_SHARED_POOL_FULL',
  'ERR_SMT_ALIGNMENT',
  'ERR_TOPOLOGY_AFFINITY',
] as const satisfies readonly ErrorCode[];

/** The codes of rejections that say there is no room. docs/reference/errors.md has them. */
export type ShortageCode = (typeof SHORTAGES)[number];

/** The codes of all rejections: no room, or a callback that failed. */
export type RejectionCode =
  | ShortageCode
  | 'ERR_POD_POOL_EMPTY'
  | 'ERR_HINT_PROVIDER'
  | 'ERR_PREFERRED_ALLOCATION';

/** True if a code says that there is no room: a release by another owner can change the answer. */
export function isShortage(code: ErrorCode | undefined): code is ShortageCode {
  return (SHORTAGES as readonly (ErrorCode | undefined)[]).includes(code);
}

/** The parts of a decision throw it; the decision catches it and returns a rejection. */
export class Refusal extends AnyError {
  declare readonly code: RejectionCode;
  readonly reason: AdmissionReason;

  constructor(reason: AdmissionReason, code: RejectionCode, message: string, details: object) {
    super(code, message, { reason, ...details });
    this.reason = reason;
  }
}

/** What a decision knows of a rejection: the facts of its code alone. */
type RefusedFacts<Code extends RejectionCode> = Omit<RejectionCodes[Code], RejectionFact> & {
  cause?: unknown;
};

/** Makes a {@link Refusal} with the facts of its code. */
export const refusal = <Code extends RejectionCode>(
  reason: AdmissionReason,
  code: Code,
  message: string,
  details: RefusedFacts<Code>,
): Refusal => new Refusal(reason, code, message, details);

/** The result of `action`; undefined if it throws a {@link Refusal}. */
export const unlessRefusal = <T>(action: () => T): T | undefined =>
  unless((error) => error instanceof Refusal, action);

// Mistakes of a program, which fail on every machine.
const MISTAKES: readonly ErrorCode[] = [
  'ERR_ALREADY_PINNED',
  'ERR_HINT_PROVIDER',
  'ERR_INVALID_ARGUMENT',
  'ERR_INVALID_LIST',
  'ERR_INVALID_OPTION',
  'ERR_INVALID_QUANTITY',
  'ERR_INVALID_TOPOLOGY',
  'ERR_ISOLATED_NEEDS_PLACEMENT',
  'ERR_MANAGER_CLOSED',
  'ERR_PREFERRED_ALLOCATION',
  'ERR_SIMULATED_MACHINE',
  'ERR_UNKNOWN_PART',
];

/**
 * The error, if a program with optional CPUs can run without them: no room, no rights, no addon.
 * @throws the error, if it is a mistake of the program or no error of numalign
 */
export function obstacleOf(error: unknown): NumalignError {
  if (error instanceof NumalignError && !MISTAKES.includes(error.code)) return error;
  throw error;
}
