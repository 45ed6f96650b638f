// Reads a state without changing it.
import { type ManagerView, type NumalignError, openManager, type ViewOptions } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { isNumalignError } from 'numalign/tools';
import { MACHINE_STATE_DIR } from './state-dir.js';

/**
 * Opens a view of a state, returns the result of `look`, and closes the view.
 * @throws what {@link openManager} and `look` throw
 */
export async function withView<T>(
  options: Omit<ViewOptions, 'readOnly'>,
  look: (view: ManagerView) => T | Promise<T>,
): Promise<T> {
  const view = await openManager({ ...options, readOnly: true });
  try {
    return await look(view);
  } finally {
    view.close();
  }
}

/** @throws what {@link openManager} throws */
export function statusIn(options: Omit<ViewOptions, 'readOnly'>): Promise<StateStatus> {
  return withView(options, (view) => view.status());
}

/** The result of `read` from one generation of the state, even if other processes commit. */
export function ofOneGeneration<T>(view: ManagerView, read: () => T): T {
  for (;;) {
    const generation = view.generation();
    const result = read();
    if (view.generation() === generation) return result;
  }
}

/**
 * Returns the `result` of `look`. Without a `stateDir` it returns `closed`, the error, if the
 * machine's folder is closed to this user.
 * @throws what `look` throws; ERR_STATE_FOLDER only with a `stateDir`
 */
export async function unlessClosed<T>(
  stateDir: string | undefined,
  look: (stateDir: string) => Promise<T>,
): Promise<
  | { readonly result: T; readonly closed?: never }
  | { readonly closed: NumalignError; readonly result?: never }
> {
  try {
    return { result: await look(stateDir ?? MACHINE_STATE_DIR) };
  } catch (error) {
    if (stateDir !== undefined || !isNumalignError(error, 'ERR_STATE_FOLDER')) throw error;
    return { closed: error };
  }
}
