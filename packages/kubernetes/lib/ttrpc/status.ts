// Status of a call, with gRPC's codes.
import { NodeError } from '../base/errors.js';

export const Status = {
  OK: 0,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
} as const;

/**
 * An error that crosses the wire: a peer's answer, or what a handler throws to answer with another
 * status than UNKNOWN.
 */
export class StatusError extends NodeError {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super('ERR_TTRPC_STATUS', message, { value: status });
    this.name = 'StatusError';
  }
}

export function statusOf(error: unknown): number {
  return error instanceof StatusError && error.status !== Status.OK ? error.status : Status.UNKNOWN;
}
