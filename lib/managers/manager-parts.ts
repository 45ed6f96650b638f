// What managers are made of.
import type { ManagerWatch } from '../admission/manager-watch.js';
import type { ReadOnlySite, Site } from '../admission/site.js';
import type { Warning } from '../admission/warnings.js';
import { NumalignError } from '../base/errors.js';
import type { DeviceResource } from '../decision/devices/device-resources.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import type { Config } from '../input/config.js';
import type { Placement } from '../input/placement.js';

/** The parts of a view. */
export interface ViewParts {
  readonly site: ReadOnlySite;
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
  readonly site: Site;
  readonly resources: Map<string, DeviceResource>;
  readonly lifetime: Lifetime;
  readonly watch: ManagerWatch;
  /** The warnings of opening it. */
  readonly openingWarnings: readonly Warning[];
}

/** Whether a manager is still in use. */
export class Lifetime {
  readonly #end = new AbortController();

  /** Aborted with ERR_MANAGER_CLOSED at the end. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get isOver(): boolean {
    return this.signal.aborted;
  }

  /** @throws ERR_MANAGER_CLOSED */
  check(): void {
    if (this.isOver) throw closedError();
  }

  end(): void {
    if (!this.isOver) this.#end.abort(closedError());
  }
}

function closedError(): NumalignError {
  return new NumalignError('ERR_MANAGER_CLOSED', 'the manager has been closed');
}
