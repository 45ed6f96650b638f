// openManager: opens a machine, and the state that its processes share. The first call loads what
// that takes.
import { throwIfExhausted } from '../base/errors.js';
import type { Optional } from '../grants/empty-grant.js';
import type { ManagerOptions } from '../input/config.js';
import type { EmptyManager } from '../managers/empty-manager.js';
import type { Manager } from '../managers/manager.js';
import type { ManagerView } from '../managers/manager-view.js';
import type { ViewOptions } from '../managers/open-machine.js';

/** Options as the caller gives them, whatever becomes of the object while code is loaded. */
export const copied = <T>(options: T): T =>
  options && [Object.prototype, null].includes(Object.getPrototypeOf(options)) ? { ...options } : options;

/** Loads what is behind the door. @throws ERR_SYSCALL if this process can open no more files */
export async function enter() {
  try {
    return (await import('./door.js')).enter();
  } catch (error) {
    throwIfExhausted(error);
    throw error;
  }
}

/**
 * Opens the machine: discovers it, opens the state that its processes share, and takes grants of
 * dead owners back. Several managers in one process are allowed and see each other. Changes of the
 * machine are no reason to refuse: see {@link Manager.warnings}. With `optional: true`, the result
 * is an {@link EmptyManager} if the machine cannot be opened.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER without access to the folder; ERR_CONFIG_CONFLICT if
 *   the recorded settings differ from the given ones; ERR_STATE_CORRUPT, ERR_STATE_VERSION,
 *   ERR_LOCK_TIMEOUT; ERR_SIMULATED_MACHINE; ERR_KUBELET_CONFLICT beside a kubelet that may give
 *   the same CPUs away
 */
export async function openManager(options: Optional<ManagerOptions>): Promise<Manager | EmptyManager>;
export async function openManager(options?: ManagerOptions): Promise<Manager>;
/**
 * With `readOnly: true`, only reads: see {@link ManagerView}. Recorded settings must agree with the
 * given ones.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER if the folder is closed to this process;
 *   ERR_CONFIG_CONFLICT; ERR_SIMULATED_MACHINE; ERR_STATE_CORRUPT, ERR_STATE_VERSION
 */
export async function openManager(options: ViewOptions): Promise<ManagerView>;
export async function openManager(
  options: ManagerOptions | ViewOptions | Optional<ManagerOptions> = {},
): Promise<ManagerView | EmptyManager> {
  // As they are now.
  const given = copied(options);
  return (await enter()).openMachine(given);
}
