// The error that an action ends with.
import type { ErrorCode, NumalignError } from '../../lib/index.js';

/** An error whose facts a test reads whatever its code, which it compares too. */
export interface FoundError extends Error, Pick<NumalignError, 'errno' | 'errnoName' | 'syscall' | 'toJSON'> {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What it throws; undefined where it throws nothing. */
export function thrownBy(action: () => unknown): FoundError | undefined {
  try {
    action();
  } catch (error) {
    return error as FoundError;
  }
  return undefined;
}

/** What it throws or rejects with. Throws where it does neither. */
export async function errorOf(action: () => unknown): Promise<FoundError> {
  try {
    await action();
  } catch (error) {
    return error as FoundError;
  }
  throw new Error('no error came');
}
