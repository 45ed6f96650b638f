// Looking at a state, which changes nothing.
import { NumalignError } from '../../base/errors.js';
import type { StateStatus } from '../../entries/diagnostics.js';
import { type ManagerView, openManager, type ViewOptions } from '../../index.js';
import { MACHINE_STATE_DIR } from './state-dir.js';

/**
 * The result of `look` for a state, which is closed afterwards.
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

/** The result of `ask`, from one generation of the state, even if others commit. */
export function ofOneGeneration<T>(view: ManagerView, ask: () => T): T {
  for (;;) {
    const generation = view.generation();
    const answer = ask();
    if (view.generation() === generation) return answer;
  }
}

/**
 * `seen`: what `look` makes of a state. `closed`: no folder was asked for, and the machine's is closed
 * to this user.
 * @throws what `look` throws, ERR_STATE_FOLDER where `stateDir` is given
 */
export async function unlessClosed<T>(
  stateDir: string | undefined,
  look: (stateDir: string) => Promise<T>,
): Promise<
  { readonly seen: T; readonly closed?: never } | { readonly closed: NumalignError; readonly seen?: never }
> {
  try {
    return { seen: await look(stateDir ?? MACHINE_STATE_DIR) };
  } catch (error) {
    if (stateDir !== undefined || !(error instanceof NumalignError) || error.code !== 'ERR_STATE_FOLDER')
      throw error;
    return { closed: error };
  }
}
