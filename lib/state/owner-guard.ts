// OwnerGuard: what this environment does about its own file among the owners', which somebody may
// remove or change, and about the end of other owners.
import type { Listener } from './files/folder-watch.js';
import { OWNER_NAME } from './files/state-files.js';
import { SETTLE_S } from './owners/living-owners.js';
import { OwnerWatch } from './owners/owner-watch.js';
import type { Owners } from './owners/owners.js';
import type { StateFolder } from './state-folder.js';

const RESTORE_ATTEMPTS = 20;
const RESTORE_PAUSE_MS = 20;
// Within this time one of the processes that hear of an owner's end takes back what it had.
const OWNER_END_SPREAD_MS = 50;
const OWNER_END_LOOK_MS = 5;
const OWNER_END_LONGEST_MS = 5000;

/** The state as its guard sees it. */
export interface Guarded {
  readonly folder: Pick<StateFolder, 'isOpen' | 'isCurrent'>;
  /** Opens or makes the folder again where somebody has removed it. @throws ERR_STATE_FOLDER */
  ensureCurrent(): void;
  /** A transaction that changes nothing: what is amiss is put together again. */
  touch(): Promise<void>;
  /** Something has happened that the folder does not show. */
  ring(): void;
}

export class OwnerGuard {
  readonly #owners: Owners;
  readonly #state: Guarded;
  readonly #watch: OwnerWatch;
  readonly #onEnd = new Set<Listener>();
  #transactions = 0;
  // The own file may have been removed or changed.
  #isDisturbed = false;

  /** `path`: of the state folder. */
  constructor(path: string, owners: Owners, state: Guarded) {
    this.#owners = owners;
    this.#state = state;
    this.#watch = new OwnerWatch(path, {
      closed: (name) => {
        // Any other is of a file that is about to get an owner's name.
        if (!OWNER_NAME.test(name)) return;
        living.doubt(name);
        owners.isOwnProcess(name) ? this.#restore() : this.#mourn(name);
      },
      disturbed: (name) => {
        if (name !== undefined && OWNER_NAME.test(name)) living.doubt(name);
        if (name === undefined || owners.isOwnProcess(name)) this.#restore();
      },
      placed: (name) => {
        living.settle(name);
        if (owners.isOwnProcess(name)) this.#restore();
      },
      missed: () => {
        this.#restore();
        this.#mournAll();
      },
    });
    const living = owners.hear(this.#watch);
  }

  /** See {@link Store.watchOwners}. */
  add(listener: Listener): () => void {
    const isFirst = this.#onEnd.size === 0;
    this.#onEnd.add(listener);
    this.#watch.start();
    // An owner may have ended before anybody listened.
    if (isFirst) setTimeout(() => this.#lookBack(), SETTLE_S * 1000).unref();
    return () => {
      this.#onEnd.delete(listener);
      // What this process holds is watched on.
      if (this.#onEnd.size === 0 && this.#owners.ownFd() === undefined) this.#watch.stop();
    };
  }

  /** REQUIRES: nobody listens, and this environment owns nothing. */
  stop(): void {
    this.#watch.stop();
  }

  /** Does what is done under the lock, and sees to the own file afterwards, not meanwhile. */
  async during<T>(transaction: () => Promise<T>): Promise<T> {
    this.#transactions++;
    try {
      return await transaction();
    } finally {
      this.#transactions--;
      if (this.#isDisturbed || !this.#watch.isActive) this.#restore();
    }
  }

  /** Another folder is at the path: what this process holds is written there. @throws ERR_SYSCALL */
  restart(): void {
    // Before the own file is written, which may be removed again at once.
    this.#watch.restart();
    this.#isDisturbed = this.#transactions > 0;
    if (!this.#isDisturbed) this.#owners.reassert();
  }

  // The own file was removed, or changed by somebody else, and perhaps the state with it.
  #restore(attempts = RESTORE_ATTEMPTS): void {
    if (!this.#state.folder.isOpen) return;
    this.#isDisturbed = true;
    // At its end.
    if (this.#transactions > 0) return;
    this.#isDisturbed = false;
    try {
      const isFolderAmiss = this.#owners.isNeeded && !this.#state.folder.isCurrent;
      if (isFolderAmiss) this.#state.ensureCurrent();
      if (!this.#owners.reassert() && !isFolderAmiss) return;
    } catch {
      // What is there may be about to be removed. In the end the next transaction says why.
      if (attempts > 1) setTimeout(() => this.#restore(attempts - 1), RESTORE_PAUSE_MS).unref();
      return;
    }
    this.#state.touch().catch(() => {});
  }

  #lookBack(): void {
    if (this.#onEnd.size > 0 && this.#state.folder.isOpen) this.#mournAll();
  }

  #mournAll(): void {
    for (const uuid of this.#owners.withLeftGrants()) this.#mourn(uuid);
  }

  // An owner has closed its file. The kernel says so just before it lets the lock go.
  #mourn(uuid: string, pauseMs = OWNER_END_LOOK_MS): void {
    const look = () => {
      if (!this.#state.folder.isOpen) return;
      const hasEnded = this.#owners.hasEnded(uuid);
      if (!hasEnded && pauseMs < OWNER_END_LONGEST_MS) this.#mourn(uuid, 2 * pauseMs);
      if (!hasEnded) return;
      this.#state.ring();
      setTimeout(tell, Math.random() * OWNER_END_SPREAD_MS).unref();
    };
    const tell = () => {
      const [listener] = this.#onEnd;
      if (listener && this.#owners.hasLeftGrants(uuid)) listener();
    };
    setTimeout(look, pauseMs).unref();
  }
}
