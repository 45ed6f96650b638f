// What managers are made of, and the events that they emit.
import type { EventEmitter } from 'node:events';
import type { Host, ReadOnlyHost } from '../admission/host.js';
import type { Warning } from '../admission/warnings.js';
import { NumalignError } from '../base/errors.js';
import { callListeners } from '../base/notices/listeners.js';
import type { DeviceResource } from '../decision/devices/device-resources.js';
import type { Drift, Hotplug } from '../enforcement/drift.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import type { Config } from '../input/config.js';
import type { Placement } from '../input/placement.js';
import type { ManagerWatch, StateChange, WatchListener } from './manager-watch.js';

/** The parts of a view. */
export interface ViewParts {
  readonly host: ReadOnlyHost;
  /** The placement of requests that choose none. */
  readonly placement: Placement;
  readonly lifetime: Lifetime;
  readonly watch: ManagerWatch;
  /** The warnings of opening it. */
  readonly openingWarnings: readonly Warning[];
  readonly sharedMembers: () => readonly SharedMember[];
  /** Called when the view closes, to close what it has open. */
  readonly release: () => void;
}

/** What a manager is made of. */
export interface ManagerParts {
  readonly config: Config;
  readonly host: Host;
  readonly resources: Map<string, DeviceResource>;
  readonly lifetime: Lifetime;
  readonly watch: ManagerWatch;
  /** The warnings of opening it. */
  readonly openingWarnings: readonly Warning[];
}

/** Whether a manager is still in use. */
export class Lifetime {
  // Node loads the class at its first use, which few programs come to.
  #end: AbortController | undefined;
  #isOver = false;

  /** Aborted with ERR_MANAGER_CLOSED at the end. */
  get signal(): AbortSignal {
    if (!this.#end) {
      this.#end = new AbortController();
      if (this.#isOver) this.#end.abort(closedError());
    }
    return this.#end.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** @throws ERR_MANAGER_CLOSED */
  check(): void {
    if (this.isOver) throw closedError();
  }

  end(): void {
    this.#isOver = true;
    this.#end?.abort(closedError());
  }
}

function closedError(): NumalignError {
  return new NumalignError('ERR_MANAGER_CLOSED', 'the manager has been closed: open another');
}

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
