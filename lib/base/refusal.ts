// Refusal: why a request cannot be met, as the part of a decision that finds it says so.
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

// A release by another owner can change the answer.
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

/** The codes of all rejections: no room, ever or now, or a callback that could not choose. */
export type RejectionCode =
  | ShortageCode
  | 'ERR_POD_POOL_EMPTY'
  | 'ERR_HINT_PROVIDER'
  | 'ERR_PREFERRED_ALLOCATION';

/** True if a code says that there is no room: a release by another owner can change the answer. */
export function isShortage(code: ErrorCode): code is ShortageCode {
  return (SHORTAGES as readonly ErrorCode[]).includes(code);
}

/** Thrown by the parts of a decision, and caught by it: a caller gets a rejection made of it. */
export class Refusal extends NumalignError {
  declare readonly code: RejectionCode;
  readonly reason: AdmissionReason;

  constructor(reason: AdmissionReason, code: RejectionCode, message: string, details: ErrorDetails = {}) {
    super(code, message, { reason, ...details });
    this.reason = reason;
  }
}

// Errors that are wrong on every machine.
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
 * The errors after which a program with optional CPUs runs without: no room, no rights, no addon.
 * @throws the error, where it is a mistake of the program, or not an error of numalign
 */
export function obstacleOf(error: unknown): NumalignError {
  if (error instanceof NumalignError && !MISTAKES.includes(error.code)) return error;
  throw error;
}
