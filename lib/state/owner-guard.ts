// OwnerGuard: restores this environment's owner file if another process removes or changes it, and
// reports that, and the end of other owners.
import type { PodAssignment } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import { Backoff, retry } from '../base/notices/backoff.js';
import { commandIn } from '../input/values/machine-folder.js';
import type { Listener } from './files/folder-watch.js';
import { OWNER_NAME } from './files/owner-claims.js';
import { SETTLE_S } from './owners/living-owners.js';
import { OwnerWatch } from './owners/owner-watch.js';
import type { Owners } from './owners/owners.js';
import type { StateFolder } from './state-folder.js';

const RESTORE_ATTEMPTS = 20;
const RESTORE_PAUSE_MS = 20;
// The processes that hear of an owner's end spread over this time. The first takes its grants back.
const OWNER_END_SPREAD_MS = 50;
const OWNER_END_PAUSES = { firstMs: 5, longestMs: 5120 };
const OWNER_END_LOOKS = 11;

/** The parts of the state that the guard needs. */
export interface Guarded {
  readonly folder: Pick<StateFolder, 'isOpen' | 'isCurrent'>;
  /** Opens or makes a removed folder again. @throws ERR_STATE_FOLDER */
  ensureCurrent(): void;
  /** Runs a transaction that changes nothing. It recovers a damaged state. */
  touch(): Promise<void>;
  /** Reports something that the folder does not show. */
  ring(): void;
}

/**
 * Learns that other programs removed or changed files of the state while grants were held. Must not
 * throw.
 */
export type HarmListener = (error: Error) => void;

export class OwnerGuard {
  readonly #watch: OwnerWatch;
  readonly #onEnd = new Set<Listener>();
  readonly #onHarm = new Set<HarmListener>();
  #transactions = 0;
  // True if this environment's file was written again, and no transaction has shown the outcome.
  #isHarmed = false;
  // True if this environment's file may have been removed or changed.
  #isDisturbed = false;

  /** `path`: the state folder. */
  constructor(
    private readonly path: string,
    private readonly owners: Owners,
    private readonly state: Guarded,
  ) {
    this.#watch = new OwnerWatch(path, {
      closed: (name) => {
        // Other names belong to new files that get an owner's name later.
        if (!OWNER_NAME.test(name)) return;
        living.doubt(name);
        owners.isOwnProcess(name) ? this.#restore() : this.#reportEnd(name);
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
        this.#reportEnds();
      },
    });
    const living = owners.hear(this.#watch);
  }

  /** See {@link Store.watchOwners}. */
  add(listener: Listener, onHarm: HarmListener = () => {}): () => void {
    const isFirst = this.#onEnd.size === 0;
    this.#onEnd.add(listener);
    this.#onHarm.add(onHarm);
    this.#watch.start();
    // An owner may have ended before the first listener came.
    if (isFirst) setTimeout(() => this.#lookBack(), SETTLE_S * 1000).unref();
    return () => {
      this.#onEnd.delete(listener);
      this.#onHarm.delete(onHarm);
      // While this environment holds something, its own file stays watched.
      if (this.#onEnd.size === 0 && this.owners.ownFd() === undefined) this.#watch.stop();
    };
  }

  /** REQUIRES: no listeners, and this environment owns nothing. */
  stop(): void {
    this.#watch.stop();
  }

  /** Runs a transaction. Restores this environment's file after it, not meanwhile. */
  async during<T>(transaction: () => Promise<T>): Promise<T> {
    this.#transactions++;
    try {
      const result = await transaction();
      this.#reportHarm();
      return result;
    } finally {
      this.#transactions--;
      if (this.#isDisturbed || !this.#watch.isActive) this.#restore();
    }
  }

  /**
   * The path has another folder now. Writes this environment's holdings there.
   * @throws ERR_SYSCALL
   */
  restart(): void {
    // Watch before writing: the file may be removed again at once.
    this.#watch.restart();
    this.#isDisturbed = this.#transactions > 0;
    if (!this.#isDisturbed) this.#reassert();
  }

  #reassert(): boolean {
    const isRewritten = this.owners.own.reassert();
    this.#isHarmed ||= isRewritten;
    return isRewritten;
  }

  #reportHarm(): void {
    if (!this.#isHarmed) return;
    this.#isHarmed = false;
    this.#fail(harmError(this.path, this.owners.own.lost));
  }

  #fail(error: Error): void {
    for (const listener of this.#onHarm) listener(error);
  }

  // The file was removed or changed by another process, perhaps together with the state. The folder
  // may be in the middle of a removal.
  #restore(): void {
    void retry(() => this.#restoreNow(), {
      firstMs: RESTORE_PAUSE_MS,
      longestMs: RESTORE_PAUSE_MS,
      mostAttempts: RESTORE_ATTEMPTS,
      onError: (error, isLast) => isLast && this.#fail(error as Error),
    });
  }

  #restoreNow(): void {
    if (!this.state.folder.isOpen) return;
    this.#isDisturbed = true;
    // The end of the transaction restores it.
    if (this.#transactions > 0) return;
    this.#isDisturbed = false;
    const isFolderAmiss = this.owners.own.isNeeded && !this.state.folder.isCurrent;
    if (isFolderAmiss) this.state.ensureCurrent();
    if (!this.#reassert() && !isFolderAmiss) return;
    this.state.touch().catch((error) => this.#fail(error));
  }

  #lookBack(): void {
    if (this.#onEnd.size > 0 && this.state.folder.isOpen) this.#reportEnds();
  }

  #reportEnds(): void {
    for (const uuid of this.owners.withLeftGrants()) this.#reportEnd(uuid);
  }

  // An owner has closed its file. The kernel reports this just before it releases the lock. All
  // processes hear of it: only one of them has reason to ask for more than the file.
  #reportEnd(uuid: string): void {
    const owners = this.owners;
    const backoff = new Backoff(OWNER_END_PAUSES);
    let hasRung = false;
    const lookLater = () => {
      if (backoff.failures < OWNER_END_LOOKS) setTimeout(look, backoff.next()).unref();
    };
    const look = () => {
      if (!this.state.folder.isOpen) return;
      if (!owners.seemsEnded(uuid)) {
        lookLater();
        return;
      }
      if (!hasRung) this.state.ring();
      hasRung = true;
      setTimeout(tell, Math.random() * OWNER_END_SPREAD_MS).unref();
    };
    const tell = () => {
      const [listener] = this.#onEnd;
      if (!listener || !owners.seemsToLeaveGrants(uuid)) return;
      if (owners.hasEnded(uuid)) listener();
      // It lives without its file, and its end may go unreported.
      else lookLater();
    };
    lookLater();
  }
}

function harmError(path: string, lost: readonly PodAssignment[]): NumalignError {
  const uids = lost.map(({ uid }) => uid);
  const outcome =
    lost.length === 0
      ? 'they are on record again; what cgroups and persistent owners held may be lost'
      : `the state that was put back lacks ${uids.join(', ')}, whose CPUs others may have now: release them`;
  const message = `another program removed, changed or put back files of the state in ${path} while this process held grants: ${outcome}`;
  const valid = `a folder that is neither removed nor restored while ${commandIn(path, 'status')} shows grants`;
  return new NumalignError('ERR_STATE_CORRUPT', message, { value: uids, valid });
}
