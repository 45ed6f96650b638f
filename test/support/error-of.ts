// The error that an action ends with.
import type { NumalignError } from '../../lib/index.js';

/** What it throws; undefined where it throws nothing. */
export function thrownBy(action: () => unknown): NumalignError | undefined {
  try {
    action();
  } catch (error) {
    return error as NumalignError;
  }
  return undefined;
}

/** What it throws or rejects with. Throws where it does neither. */
export async function errorOf(action: () => unknown): Promise<NumalignError> {
  try {
    await action();
  } catch (error) {
    return error as NumalignError;
  }
  throw new Error('no error came');
}
