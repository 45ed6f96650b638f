// The errors of numalign: one class, literal codes, the offending value and what would be valid in
// `details`.

import type { RejectionFact } from './codes/admission-reasons.js';
import { errnoName, errorText } from './codes/errno.js';
import type { ErrorCodes } from './codes/error-codes.js';
import type { ErrorDetails } from './codes/error-details.js';
import { plainJson } from './text/plain-json.js';

// An import would load the streams of Node at the import of numalign.
const { readFileSync, readlinkSync } = process.getBuiltinModule('node:fs');

/** What went wrong. docs/reference/errors.md says for each code what it means and what to do. */
export type ErrorCode = keyof ErrorCodes;

export type { ErrorDetails };

/** What {@link NumalignError} is for one code. */
export interface CodedError<Code extends ErrorCode> extends Error {
  /** What went wrong; literal and stable. */
  readonly code: Code;
  /** Facts by name, such as `value` and `valid`. */
  readonly details: Readonly<Omit<ErrorDetails, RejectionFact> & ErrorCodes[Code]>;
  /** The errno of the kernel as a positive number, with ERR_SYSCALL and ERR_CGROUP. */
  readonly errno?: number;
  /** Its name, such as `EPERM`. */
  readonly errnoName?: string;
  /** The refused system call, with ERR_SYSCALL and ERR_CGROUP. */
  readonly syscall?: string;

  /**
   * Name, code, message and details for a log. A bigint becomes its digits, a circular reference
   * `[Circular]`.
   */
  toJSON(): { name: string; code: ErrorCode; message: string; details: Record<string, unknown> };
}

/**
 * Every error that numalign throws on purpose. `code` and the named `details` are stable; the
 * message is for people and may change. It is a union by `code`: after
 * `if (error.code === 'ERR_NOT_MOVED')`, TypeScript knows `error.details.reason`.
 *
 * After an error no grant is made, changed or lost, with two exceptions. If a hint provider fails
 * at a release (ERR_HINT_PROVIDER), the grant is released all the same. If `takeOver` is aborted
 * before the former owner has left (ERR_OWNER_ALIVE), the grant belongs to this process. A change
 * of the machine is not an error: see docs/changes.md.
 *
 * A `TypeError` means that a call breaks the TypeScript types. An aborted call throws the reason of
 * its `signal` unchanged, by default an `AbortError`.
 */
export type NumalignError<Code extends ErrorCode = ErrorCode> = Code extends ErrorCode
  ? CodedError<Code>
  : never;

/** The details to make an error of, with what caused it. */
type Given<Code extends ErrorCode> = NumalignError<Code>['details'] & { readonly cause?: unknown };

interface NumalignErrorClass {
  readonly prototype: NumalignError;
  // Without it, TypeScript leaves the errors in what is no error. Functions have it.
  [Symbol.hasInstance](value: unknown): value is NumalignError;
  new <Code extends ErrorCode>(
    code: Code,
    message: string,
    ...details: object extends ErrorCodes[Code] ? [details?: Given<Code>] : [details: Given<Code>]
  ): NumalignError<Code>;
}

/** The class of all errors, for those that extend it: {@link NumalignError} is not one type but many. */
export class AnyError extends Error implements CodedError<ErrorCode> {
  readonly code: ErrorCode;
  readonly details: CodedError<ErrorCode>['details'];
  declare readonly errno?: number;
  declare readonly errnoName?: string;
  declare readonly syscall?: string;

  constructor(code: ErrorCode, message: string, details: object = {}) {
    const { cause, ...facts } = details as { cause?: unknown; errno?: unknown; syscall?: unknown };
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = Object.freeze(facts) as CodedError<ErrorCode>['details'];
    if (typeof facts.errno === 'number') {
      this.errno = facts.errno;
      this.errnoName = errnoName(facts.errno);
    }
    if (typeof facts.syscall === 'string') this.syscall = facts.syscall;
  }

  toJSON(): ReturnType<NumalignError['toJSON']> {
    const { name, code, message } = this;
    return { name, code, message, details: plainJson(this.details) as Record<string, unknown> };
  }
}
AnyError.prototype.name = 'NumalignError';
Object.defineProperty(AnyError, 'name', { value: 'NumalignError' });

// A process may evaluate this module twice, and the addon, of which there is one, throws errors of
// one of the classes.
const BRAND = Symbol.for('numalign.error');
Object.defineProperty(AnyError.prototype, BRAND, { value: true });
Object.defineProperty(AnyError, Symbol.hasInstance, {
  value(this: unknown, value: { readonly [BRAND]?: unknown } | null | undefined) {
    if (this === AnyError) return value?.[BRAND] === true;
    return Function.prototype[Symbol.hasInstance].call(this, value);
  },
});

export const NumalignError = AnyError as unknown as NumalignErrorClass;

/** The same error with another message, and with more facts or another cause. */
export const reworded = (error: NumalignError, message: string, more: object = {}): NumalignError =>
  new AnyError(error.code, message, { ...error.details, ...more }) as NumalignError;

/** The errno and system call of a Node error, as details of a {@link NumalignError}. */
export function kernelFacts({ errno, syscall }: NodeJS.ErrnoException): {
  readonly errno?: number;
  readonly syscall?: string;
} {
  return { ...(errno !== undefined && { errno: -errno }), ...(syscall !== undefined && { syscall }) };
}

/** A Node error of a system call as ERR_SYSCALL; any other error as it is. */
export function kernelError<E>(error: E): E | NumalignError {
  const { errno, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof NumalignError || errno === undefined || syscall === undefined) return error;
  const facts = kernelFacts(error as NodeJS.ErrnoException);
  return new NumalignError('ERR_SYSCALL', errorText(error as NodeJS.ErrnoException), {
    ...facts,
    cause: error,
  });
}

/** The text of a file that every machine has. @throws ERR_SYSCALL if it cannot be read */
export function kernelText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw kernelError(error);
  }
}

/**
 * Throws an error that says nothing about a file: this process, or the machine, can open no more.
 * @throws ERR_SYSCALL
 */
export function throwIfExhausted(error: unknown): void {
  if (hasCode('EMFILE', 'ENFILE', 'ENOMEM')(error)) throw kernelError(error);
}

/**
 * The text of a file of the kernel or of another program; undefined if it is missing, or closed to
 * this process.
 * @throws ERR_SYSCALL
 */
export const textOf = (path: string): string | undefined => unlessClosed(() => readFileSync(path, 'utf8'));

/** What a link says, such as those in /proc/PID/ns. Empty if the same holds. */
export const linkOf = (path: string): string => unlessThrown(() => readlinkSync(path), '');

/** Whether numalign threw an error, with one of these codes. */
export function isNumalignError<Code extends ErrorCode>(
  error: unknown,
  ...codes: readonly Code[]
): error is NumalignError<Code> {
  return error instanceof NumalignError && (codes as readonly ErrorCode[]).includes(error.code);
}

/** The {@link NumalignError} that `action` throws; undefined if it does what it should. */
export function refusalOf(action: () => unknown): NumalignError | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    if (error instanceof NumalignError) return error;
    throw error;
  }
}

/** The result of `action`; `fallback` if it throws an error of this kind. */
export function unless<T, U = undefined>(
  isExpected: (error: unknown) => boolean,
  action: () => T,
  fallback?: U,
): T | U {
  try {
    return action();
  } catch (error) {
    if (isExpected(error)) return fallback as U;
    throw error;
  }
}

/** Whether an error of Node has one of these codes. */
export const hasCode =
  (...codes: string[]) =>
  (error: unknown): boolean =>
    codes.includes((error as NodeJS.ErrnoException).code ?? '');

/** The result of `action`, or `fallback` if it throws a {@link NumalignError}. */
export function unlessRefused<T, U = undefined>(action: () => T, fallback?: U): T | U {
  return unless((error) => error instanceof NumalignError, action, fallback);
}

/** The result of `action`, or `fallback` if it throws anything. */
export const unlessThrown = <T, U = undefined>(action: () => T, fallback?: U): T | U =>
  unless(() => true, action, fallback);

/**
 * The result of `action`, which reads files of the kernel or of other programs; `fallback` if they are
 * missing, or closed to this process.
 * @throws ERR_SYSCALL if this process, or the machine, can open no more
 */
export const unlessClosed = <T, U = undefined>(action: () => T, fallback?: U): T | U =>
  unless(
    (error) => {
      throwIfExhausted(error);
      return true;
    },
    action,
    fallback,
  );
