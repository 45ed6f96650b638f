import { NumalignError } from 'numalign';

/** Whether numalign threw an error, with one of these codes. */
export const hasCode = (error: unknown, ...codes: readonly string[]): error is NumalignError =>
  error instanceof NumalignError && codes.includes(error.code);
