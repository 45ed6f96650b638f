// ApiError: why a request to the API server failed.
import { NodeError } from '../base/errors.js';

/**
 * - `ERR_API_UNREACHABLE`: no connection, or it broke
 * - `ERR_API_TLS`: the server's certificate is not signed by the CA, or is for another name
 * - `ERR_API_TIMEOUT`: the server does not answer in time
 * - `ERR_API_CREDENTIALS`: the files of the token or the CA cannot be read
 * - `ERR_API_UNAUTHORIZED`: 401, even with the current token of the file
 * - `ERR_API_FORBIDDEN`: 403, RBAC does not allow it
 * - `ERR_API_NOT_FOUND`: 404, no such object, or no such kind of resource
 * - `ERR_API_CONFLICT`: 409, it exists, or has been changed in the meantime
 * - `ERR_API_GONE`: 410, a resource version that the server no longer keeps
 * - `ERR_API_INVALID`: 400, 405, 413, 415 or 422, the server rejects the request
 * - `ERR_API_BUSY`: 429, too many requests
 * - `ERR_API_SERVER`: 500 and above
 * - `ERR_API_ANSWER`: an answer that does not follow Kubernetes' API
 */
export type ApiErrorCode = (typeof API_ERROR_CODES)[number];

export const API_ERROR_CODES = [
  'ERR_API_UNREACHABLE',
  'ERR_API_TLS',
  'ERR_API_TIMEOUT',
  'ERR_API_CREDENTIALS',
  'ERR_API_UNAUTHORIZED',
  'ERR_API_FORBIDDEN',
  'ERR_API_NOT_FOUND',
  'ERR_API_CONFLICT',
  'ERR_API_GONE',
  'ERR_API_INVALID',
  'ERR_API_BUSY',
  'ERR_API_SERVER',
  'ERR_API_ANSWER',
] as const;

interface ApiErrorDetails {
  readonly value?: unknown;
  readonly valid?: unknown;
  readonly cause?: unknown;
  /** The server's `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
}

export class ApiError extends NodeError {
  declare readonly code: ApiErrorCode;
  readonly retryAfterMs: number | undefined;

  constructor(code: ApiErrorCode, message: string, details: ApiErrorDetails = {}) {
    super(code, message, details);
    this.name = 'ApiError';
    this.retryAfterMs = details.retryAfterMs;
  }

  /** True if the same request may succeed a moment later. */
  get isPassing(): boolean {
    return PASSING.has(this.code);
  }
}

const PASSING: ReadonlySet<ApiErrorCode> = new Set<ApiErrorCode>([
  'ERR_API_UNREACHABLE',
  'ERR_API_TIMEOUT',
  'ERR_API_BUSY',
  'ERR_API_SERVER',
]);

const CODES: Readonly<Record<number, ApiErrorCode>> = {
  401: 'ERR_API_UNAUTHORIZED',
  403: 'ERR_API_FORBIDDEN',
  404: 'ERR_API_NOT_FOUND',
  409: 'ERR_API_CONFLICT',
  410: 'ERR_API_GONE',
  429: 'ERR_API_BUSY',
  400: 'ERR_API_INVALID',
  405: 'ERR_API_INVALID',
  413: 'ERR_API_INVALID',
  415: 'ERR_API_INVALID',
  422: 'ERR_API_INVALID',
};

/** The error for an HTTP status; `body`: a Status object, if the server is Kubernetes. */
export function statusError(
  what: string,
  status: number,
  body: unknown,
  retryAfter?: string | undefined,
): ApiError {
  const message = (body as { message?: unknown } | null | undefined)?.message;
  const text = typeof message === 'string' && message !== '' ? message.slice(0, MOST_TEXT) : `HTTP ${status}`;
  const code = CODES[status] ?? (status >= 500 ? 'ERR_API_SERVER' : 'ERR_API_ANSWER');
  return new ApiError(code, `${what}: ${text}`, { value: status, retryAfterMs: msOf(retryAfter) });
}

const MOST_TEXT = 1000;
// A longer `Retry-After` is cut to this.
const LONGEST_RETRY_AFTER_MS = 60_000;

// In seconds: Kubernetes sends no dates.
function msOf(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined || !/^\d{1,9}$/.test(retryAfter)) return undefined;
  return Math.min(Number(retryAfter) * 1000, LONGEST_RETRY_AFTER_MS);
}

/** The error for a failed connection. */
export function connectionError(what: string, cause: Error & { code?: string }): ApiError {
  const code = cause.code ?? '';
  const isTls = /^(ERR_TLS|ERR_SSL|EPROTO)|CERT|SIGNATURE|ISSUER/.test(code);
  return new ApiError(isTls ? 'ERR_API_TLS' : 'ERR_API_UNREACHABLE', `${what}: ${cause.message || code}`, {
    value: code,
    cause,
    ...(isTls && { valid: 'a certificate that the CA has signed for this host' }),
  });
}
