// ManagerEmitter: the events of a manager, and its end.
import { EventEmitter } from 'node:events';
import { type InspectOptions, inspect } from 'node:util';
import { publishError } from '../admission/diagnostics.js';
import { ManagerWatch, type StateChange } from '../admission/manager-watch.js';
import { flagGroundNow, grantInfos } from '../admission/on-record.js';
import type { ReadOnlySite } from '../admission/site.js';
import type { Warning } from '../admission/warnings.js';
import { callListeners } from '../base/notices/listeners.js';
import type { Settings } from '../decision/machine-settings.js';
import type { Drift, Hotplug } from '../enforcement/drift.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import type { Placement } from '../input/placement.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Lifetime } from './lifetime.js';

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
interface ListenerEvents {
  newListener: [event: string | symbol];
  removeListener: [event: string | symbol];
}

/** The parts of a view. */
export interface ViewParts {
  readonly site: ReadOnlySite;
  /** The placement of requests that choose none. */
  readonly placement: Placement;
  readonly lifetime: Lifetime;
  /** The warnings of opening it. */
  readonly openingWarnings: readonly Warning[];
  readonly sharedMembers: () => readonly SharedMember[];
  /** True if nothing else reports changes of the CPUs at least twice a minute. */
  readonly isBlind: boolean;
  /** Ends the grants of dead owners; does nothing for a view that only reads. */
  readonly reclaim: () => Promise<void>;
  /** Called when the view closes, to close what it has open. */
  readonly release: () => void;
}

/** For the package's own modules: looks for changes of flags, which need no commit. */
export let lookAgain: (manager: ManagerEmitter) => void;

/** For the package's own modules: reports what failed in the background. */
export let report: (manager: ManagerEmitter, error: Error) => void;

/** The base of all managers: an emitter of events that can be closed. */
export abstract class ManagerEmitter extends EventEmitter<ManagerEvents & ListenerEvents> {
  /** Identifies the manager within its thread, in messages of the diagnostics channels. */
  readonly id: number;
  /**
   * The users of the state: `machine`, all processes; `private`, those that use the folder;
   * `memory`, no other manager.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /** The state folder; empty if nothing is kept on disk. */
  readonly stateDir: string;
  readonly #parts: ViewParts;
  readonly #watch: ManagerWatch;

  /** Use {@link openManager}. */
  constructor(parts: ViewParts) {
    super();
    const { managerId, ledger } = parts.site;
    this.id = managerId;
    this.#parts = parts;
    this.scope = ledger.scope;
    this.stateDir = ledger.scope === 'memory' ? '' : ledger.path;
    this.#watch = this.#newWatch();
    // Node emits this before it adds the listener, so that an error keeps the listener out.
    this.on('newListener', (event) => {
      if (event !== 'change') return;
      parts.lifetime.check();
      this.#watch.start();
    });
    this.on('removeListener', (event) => {
      if (event === 'change' && this.listenerCount('change') === 0) this.#watch.stop();
    });
  }

  #newWatch(): ManagerWatch {
    const { site, reclaim, isBlind } = this.#parts;
    return new ManagerWatch({
      store: () => site.ledger,
      recoveries: () => site.ledger.recoveries,
      infos: (pods, state) => grantInfos(site, pods, state),
      ground: (state) => flagGroundNow(site, state),
      isBlind: () => isBlind && !site.topology.isSimulated,
      settings: () => this.settings(),
      sharedPool: () => this.sharedPool(),
      reclaim,
      tell: (change) => callListeners(this, 'change', change),
      fail: (error) => report(this, error),
    });
  }

  static {
    lookAgain = (manager) => setImmediate(() => manager.#watch.look());
    report = (manager, error) => {
      publishError(manager.#parts.site, 'watch', error);
      callListeners(manager, 'error', error);
    };
  }

  /** A summary for JSON.stringify. It does not read the state. */
  toJSON() {
    const { id, scope, stateDir } = this;
    return { id, scope, stateDir, cpus: this.#parts.site.topology.cpus };
  }

  /** What console.log shows. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `${this.constructor.name} ${inspect(this.toJSON(), options)}`;
  }

  abstract settings(): Settings;

  abstract sharedPool(): CpuSet;

  /**
   * Ends the use of this object, its events, and waiting requests (ERR_MANAGER_CLOSED). Grants
   * stay. The state folder is closed with the last manager, or with the last grant of this process
   * if that is later.
   */
  close(): void {
    const { lifetime, release } = this.#parts;
    if (lifetime.isOver) return;
    lifetime.end();
    this.#watch.stop();
    release();
    for (const event of ['change', 'drift', 'hotplug', 'error'] as const) this.removeAllListeners(event);
  }

  /** As {@link close}. */
  [Symbol.dispose](): void {
    this.close();
  }
}
