// OpenConfigured: the manager of a configuration, also if the settings on record differ.
import { type Manager, type ManagerOptions, openManager } from 'numalign';
import type { MachineOptions } from 'numalign/tools';
import { isNumalignError } from 'numalign/tools';
import type { Configuration } from './configuration.js';

export interface Opened {
  readonly manager: Manager;
  /** Settings that the state does not have yet. */
  readonly waiting: MachineOptions | undefined;
}

const isConflict = (error: unknown) => isNumalignError(error, 'ERR_CONFIG_CONFLICT');

/**
 * Opens the state. Settings on record that differ stay for now: grants may stand against a change.
 * @throws like openManager, except for ERR_CONFIG_CONFLICT
 */
export async function openConfigured(
  { manager: { placement, settings } }: Configuration,
  options: ManagerOptions,
): Promise<Opened> {
  const base = { ...options, ...placement };
  try {
    return { manager: await openManager({ ...base, ...settings }), waiting: undefined };
  } catch (error) {
    if (!isConflict(error)) throw error;
    return { manager: await openManager(base), waiting: settings };
  }
}
