// Refusal: the error with which a part of a decision says why a request cannot be met.
import { type ErrorCode, type ErrorDetails, NumalignError } from './errors.js';

/**
 * Why a pod is not admitted, in the kubelet's words. `TopologyAffinityError`: the topology policy
 * refuses. `SMTAlignmentError`: `full-pcpus-only` needs whole cores. `EmptyPodSharedPoolError`:
 * exclusive containers leave the others of the pod nothing to share. `UnexpectedAdmissionError`:
 * every other reason, such as too few CPUs.
 */
export type AdmissionReason =
  | 'TopologyAffinityError'
  | 'SMTAlignmentError'
  | 'UnexpectedAdmissionError'
  | 'EmptyPodSharedPoolError';

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
export function isShortage(code: ErrorCode): code is ShortageCode {
  return (SHORTAGES as readonly ErrorCode[]).includes(code);
}

/** The parts of a decision throw it; the decision catches it and returns a rejection. */
export class Refusal extends NumalignError {
  declare readonly code: RejectionCode;
  readonly reason: AdmissionReason;

  constructor(reason: AdmissionReason, code: RejectionCode, message: string, details: ErrorDetails = {}) {
    super(code, message, { reason, ...details });
    this.reason = reason;
  }
}

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
