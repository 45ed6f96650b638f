// The events of managers.
import type { EventEmitter } from 'node:events';
import { callListeners } from '../base/notices/listeners.js';
import type { Drift, Hotplug } from '../enforcement/drift.js';
import type { ViewParts } from './manager-parts.js';
import type { StateChange, WatchListener } from './manager-watch.js';

/**
 * The events of a {@link Manager}. A {@link ManagerView} has only `change` and `error`. What a
 * listener throws is an uncaught exception; all others are called.
 */
export interface ManagerEvents {
  /** The state, or what flags depend on, has changed. A listener keeps the process alive. */
  change: [change: StateChange];
  /**
   * The state cannot be read, or grants of dead owners cannot be taken back. ERR_STATE_CORRUPT:
   * another program removed or put back files of the state while this process held grants.
   */
  error: [error: Error];
  /** Reconciling found a difference, see {@link Manager.reconcile}. */
  drift: [drift: Drift];
  /** CPUs of a grant of this process went offline, or came back. */
  hotplug: [hotplug: Hotplug];
}

// The events of every EventEmitter.
export interface ListenerEvents {
  newListener: [event: string | symbol];
  removeListener: [event: string | symbol];
}

export type ManagerEmitter = EventEmitter<ManagerEvents & ListenerEvents>;

/** Has a manager watch the state while its event `change` has listeners. */
export function watchWhileHeard(manager: ManagerEmitter, { lifetime, watch }: ViewParts): void {
  const listener: WatchListener = {
    tell: (change) => callListeners(manager, 'change', change),
    fail: (error) => callListeners(manager, 'error', error),
  };
  // Node emits this before it adds the listener, so that an error keeps the listener out.
  manager.on('newListener', (event) => {
    if (event !== 'change') return;
    lifetime.check();
    watch.start(listener);
  });
  manager.on('removeListener', (event) => {
    if (event === 'change' && manager.listenerCount('change') === 0) watch.stop();
  });
}
