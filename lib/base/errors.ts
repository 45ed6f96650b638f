// The errors of numalign: one class, literal codes, the offending value and what would be valid in
// `details`.
import { getSystemErrorName } from 'node:util';
import { plainJson } from './text/plain-json.js';

/** What can go wrong. docs/errors.md says for each what it means and what to do. */
export type ErrorCode =
  | 'ERR_ADDON_MISSING'
  | 'ERR_ADOPTION'
  | 'ERR_ALREADY_PINNED'
  | 'ERR_CGROUP'
  | 'ERR_CHILD_ALIVE'
  | 'ERR_COMMAND_FAILED'
  | 'ERR_CONFIG_CONFLICT'
  | 'ERR_ENFORCEMENT'
  | 'ERR_GRANT_BUSY'
  | 'ERR_GRANT_RELEASED'
  | 'ERR_HINT_PROVIDER'
  | 'ERR_INSUFFICIENT_CPUS'
  | 'ERR_INSUFFICIENT_DEVICES'
  | 'ERR_INSUFFICIENT_MEMORY'
  | 'ERR_INVALID_ARGUMENT'
  | 'ERR_INVALID_LIST'
  | 'ERR_INVALID_OPTION'
  | 'ERR_INVALID_POD'
  | 'ERR_INVALID_QUANTITY'
  | 'ERR_INVALID_TOPOLOGY'
  | 'ERR_ISOLATED_NEEDS_PLACEMENT'
  | 'ERR_KUBELET_CONFLICT'
  | 'ERR_KUBELET_IMPORT'
  | 'ERR_KUBELET_STATE'
  | 'ERR_LOCK_TIMEOUT'
  | 'ERR_MANAGER_CLOSED'
  | 'ERR_MEMORY_SHORTAGE'
  | 'ERR_MEMBER_UNMOVABLE'
  | 'ERR_OPTIONAL_DEPENDENCY'
  | 'ERR_OWNER_ALIVE'
  | 'ERR_OWNER_SHARED'
  | 'ERR_POD_CONFLICT'
  | 'ERR_POD_POOL_EMPTY'
  | 'ERR_PREFERRED_ALLOCATION'
  | 'ERR_QUIET'
  | 'ERR_SCHEDULING'
  | 'ERR_SHARED_POOL_EMPTY'
  | 'ERR_SHARED_POOL_FULL'
  | 'ERR_SIMULATED_MACHINE'
  | 'ERR_SMT_ALIGNMENT'
  | 'ERR_STATE_CORRUPT'
  | 'ERR_STATE_FOLDER'
  | 'ERR_STATE_VERSION'
  | 'ERR_SYSCALL'
  | 'ERR_TOPOLOGY_AFFINITY'
  | 'ERR_UNKNOWN_CONTAINER'
  | 'ERR_UNKNOWN_GRANT'
  | 'ERR_UNKNOWN_MEMBER'
  | 'ERR_UNKNOWN_PART'
  | 'ERR_UNKNOWN_TRANSFER'
  | 'ERR_WORKER_START';

/**
 * Facts about the error, by name: the offending `value`, what is `valid`, and whatever the code's
 * description lists.
 */
export interface ErrorDetails extends Record<string, unknown> {
  cause?: unknown;
}

/**
 * Every error that numalign throws on purpose. `code` is literal and stable; the message is for
 * people.
 */
export class NumalignError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<ErrorDetails>;
  /**
   * With ERR_SYSCALL and ERR_CGROUP: the kernel's refusal as a positive errno, and its name, such
   * as `EPERM`.
   */
  declare readonly errno?: number;
  declare readonly errnoName?: string;
  /** With ERR_SYSCALL and ERR_CGROUP: which system call was refused. */
  declare readonly syscall?: string;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    const { cause, ...facts } = details;
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = Object.freeze(facts);
    if (typeof facts.errno === 'number') {
      this.errno = facts.errno;
      this.errnoName = getSystemErrorName(-facts.errno);
    }
    if (typeof facts.syscall === 'string') this.syscall = facts.syscall;
  }

  /** What a log can have of it; details as far as JSON can have them. */
  toJSON(): { name: string; code: ErrorCode; message: string; details: Record<string, unknown> } {
    const { name, code, message } = this;
    return { name, code, message, details: plainJson(this.details) as Record<string, unknown> };
  }
}
NumalignError.prototype.name = 'NumalignError';

/**
 * What an error of Node's tells of the kernel, as the details of a {@link NumalignError} have it.
 */
export function kernelFacts({ errno, syscall }: NodeJS.ErrnoException): ErrorDetails {
  return { ...(errno !== undefined && { errno: -errno }), ...(syscall !== undefined && { syscall }) };
}

/** The answer of `action`; `instead`, or undefined, where that throws a {@link NumalignError}. */
export function unlessRefused<T, U = undefined>(action: () => T, instead?: U): T | U {
  try {
    return action();
  } catch (error) {
    if (error instanceof NumalignError) return instead as U;
    throw error;
  }
}
