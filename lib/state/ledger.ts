// Ledger: the state folder. Readers take no lock and never see half a state. A transaction takes
// the lock, reads again, and commits durably.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ENVIRONMENT, Registry } from '../base/collections/registry.js';
import { WeakValues } from '../base/collections/weak-values.js';
import { type NumalignError, unlessRefused } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { turnIfDue } from '../base/steps.js';
import { FolderWatch, type Listener, type Listening } from './files/folder-watch.js';
import { archive } from './files/put-aside.js';
import { type GoodState, STATE_FILE } from './files/state-files.js';
import { AgreedRoot } from './folder/agreed-root.js';
import { canonical, readBootId, scopeAt } from './folder/folder.js';
import { explain, explaining } from './folder/folder-error.js';
import type { Checkpoint } from './format/checkpoint.js';
import { type HarmListener, OwnerGuard } from './owner-guard.js';
import { Owners } from './owners/owners.js';
import { RootUsers } from './root-users.js';
import { StateFolder } from './state-folder.js';
import { StateLock } from './state-lock.js';
import { StateReader } from './state-reader.js';
import { StateWriter } from './state-writer.js';
import type { Commit, Decide, StatePart, StateRecovered, Store, TransactOptions } from './store.js';
import { FolderQueue, type WaitQueue } from './wait-queue.js';

const RESTORE_TIMEOUT_MS = 10_000;

function refusing(path: string, error: NumalignError): Commit {
  const refusal = explain(path, error);
  return Object.assign(() => Promise.reject(refusal), { refusal });
}

// By path: the managers of an environment share the state in memory and the owner.
const ledgers = () => new WeakValues<Ledger>();

/**
 * Open while in use: see {@link Store.use}. Later callers, like a handle of a persistent grant,
 * open it again for the time of their call.
 */
export class Ledger implements Store {
  /** `machine`: /run/numalign, valid for the whole machine. `private`: any other folder. */
  readonly scope: 'machine' | 'private';
  readonly registry: Registry<Store> = new Registry<Store>(this);
  readonly rootUsers: RootUsers;
  readonly #users = new Set<object>();
  readonly #folder: StateFolder;
  readonly #owners: Owners;
  readonly #waiters: WaitQueue;
  readonly #agreedRoot: AgreedRoot;
  readonly #watch: FolderWatch;
  readonly #guard: OwnerGuard;
  readonly #lock: StateLock;
  readonly #reader: StateReader;
  readonly #writer: StateWriter;

  private constructor(
    readonly path: string,
    scope: Ledger['scope'],
  ) {
    this.scope = scope;
    this.rootUsers = new RootUsers(path);
    this.#folder = new StateFolder(path, scope);
    const { folder, owners, waiting } = this.#folder;
    const bootId = readBootId();
    this.#owners = new Owners(owners, waiting, path, bootId);
    this.#waiters = new FolderQueue(waiting, join(path, 'waiting'));
    this.#agreedRoot = new AgreedRoot(path, scope, folder);
    this.#watch = new FolderWatch(path, STATE_FILE);
    // In a crowd there are many lines to read: each waiter reads its own before it has the lock.
    this.#lock = new StateLock(path, folder, () => unlessRefused(() => this.#reader.load()));
    this.#reader = new StateReader(path, this.#folder, this.#owners, bootId);
    this.#writer = new StateWriter(path, folder, this.#owners, this.#reader);
    this.#guard = new OwnerGuard(path, this.#owners, {
      folder: this.#folder,
      ensureCurrent: () => this.#ensureCurrent(),
      touch: () =>
        this.transact({ lockTimeoutMs: RESTORE_TIMEOUT_MS, totalOn: this.#reader.totalOn }, async () => {}),
      ring: () => this.#watch.ring(),
    });
  }

  /** Opens the folder, or makes it. @throws ERR_STATE_FOLDER */
  static open(stateDir: string): Ledger {
    const path = canonical(stateDir);
    const all = ENVIRONMENT.of(ledgers);
    const existing = all.get(path);
    if (existing) {
      existing.#ensureOpen();
      return existing;
    }
    const ledger = new Ledger(path, scopeAt(path));
    all.add(path, ledger);
    all.hold(ledger);
    ledger.#closeLater();
    return ledger;
  }

  use(): () => void {
    this.#ensureOpen();
    const user = {};
    this.#users.add(user);
    return () => {
      if (this.#users.delete(user)) this.#closeUnused();
    };
  }

  // Opens an existing folder only: a look does not make a removed one again.
  // @throws ERR_STATE_FOLDER
  #look(): void {
    if (this.#folder.isOpen) return;
    if (!existsSync(this.path)) throw this.#reader.removedError();
    this.#ensureOpen();
  }

  // Opens the folder until the end of this turn, or longer if it has users.
  // @throws ERR_STATE_FOLDER
  #ensureOpen(): void {
    if (this.#folder.isOpen) return;
    this.#folder.reopen();
    ENVIRONMENT.of(ledgers).hold(this);
    this.#closeLater();
  }

  #closeLater(): void {
    setImmediate(() => this.#closeUnused()).unref();
  }

  // Closes the folder if nothing uses it.
  #closeUnused(): void {
    if (this.#users.size > 0 || this.#owners.own.holdsGrant || !this.#folder.isOpen) return;
    this.#guard.stop();
    this.#owners.own.close();
    this.#folder.close();
    this.#reader.forget();
    // Recoveries and the rooms' data exist only here; they keep the object.
    if (this.registry.isEmpty && this.recoveries.length === 0) ENVIRONMENT.of(ledgers).letGo(this);
  }

  // If the folder or a part of it was removed, opens or makes it again and writes this process's
  // holdings there.
  // @throws ERR_STATE_FOLDER
  #ensureCurrent(): void {
    if (this.#folder.isCurrent) return;
    if (this.#folder.folder.isCurrent()) {
      this.#folder.reopenInside();
    } else {
      this.#folder.reopen();
      this.#reader.noteReplaced();
      this.#watch.restart();
    }
    explaining(this.path, () => this.#guard.restart());
  }

  // Under the lock, in the folder that it locks: only what is inside may be other folders.
  // @throws ERR_STATE_FOLDER, the signal's reason
  #rejoin(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#folder.isCurrent) return;
    this.#reader.checkCurrent();
    this.#folder.reopenInside();
    this.#guard.restart();
  }

  get recoveries(): readonly StateRecovered[] {
    return this.#writer.recoveries;
  }

  get owners(): Owners {
    this.#look();
    return this.#owners;
  }

  get agreedRoot(): AgreedRoot {
    this.#look();
    return this.#agreedRoot;
  }

  get waiters(): WaitQueue {
    this.#look();
    return this.#waiters;
  }

  /** @throws ERR_STATE_FOLDER */
  part<Part extends StatePart>(name: string, make: (folder: NativeFolder, path: string) => Part): Part {
    this.#look();
    return this.#folder.part(name, make);
  }

  watch(listener: Listener, listening: Listening = {}): () => void {
    return this.#using(() => this.#watch.add(listener, listening));
  }

  watchOwners(listener: Listener, onHarm?: HarmListener): () => void {
    return this.#using(() => this.#guard.add(listener, onHarm));
  }

  #using(begin: () => () => void): () => void {
    const end = this.use();
    const stop = begin();
    return () => {
      stop();
      end();
    };
  }

  /**
   * The newest committed checkpoint; undefined before the first commit. Synchronous: one stat, and
   * a read only if the file has changed. If the file is damaged or missing, returns what can be
   * recovered without writing.
   * @throws ERR_STATE_CORRUPT if nothing can be recovered, ERR_STATE_VERSION, ERR_STATE_FOLDER,
   *   ERR_SYSCALL
   */
  read(): Checkpoint | undefined {
    this.#look();
    return this.#reader.read();
  }

  get found(): GoodState | undefined {
    return this.#reader.journal.good;
  }

  isOfThisBoot(checkpoint: Checkpoint): boolean {
    return this.#reader.isOfThisBoot(checkpoint);
  }

  /** REQUIRES: the lock. */
  archive(checkpoint: Checkpoint): Promise<string> {
    return archive(this.#folder.folder, checkpoint);
  }

  /**
   * Runs `decide` under the lock. `decide` gets a fresh checkpoint and a `commit` that writes the
   * next one durably. Its effects are one step for all processes that take the lock.
   * @throws ERR_LOCK_TIMEOUT, the signal's reason, ERR_STATE_FOLDER if the folder was removed, and
   *   what `decide` throws
   */
  async transact<T>(options: TransactOptions, decide: Decide<T>): Promise<T> {
    const turn = turnIfDue();
    if (turn) await turn;
    options.signal?.throwIfAborted();
    const end = this.use();
    try {
      this.#reader.totalOn = options.totalOn;
      const begun = this.#lock.tryBegin(this.#reader.journal, this.#folder.inside);
      if (begun) return await this.#guard.during(() => this.#holding(begun, false, decide, options.signal));
      this.#ensureCurrent();
      const preparing = this.#reader.journal.prepare();
      if (preparing) {
        await preparing;
        options.signal?.throwIfAborted();
        this.#ensureCurrent();
      }
      // Changes no byte of a newer format, not even of the lock's file.
      const refused = this.#reader.readRefused();
      if (refused?.refusal) return await decide(refused, refusing(this.path, refused.refusal));
      const result = this.#lock.take(options);
      // A free lock is taken synchronously: the caller's code must not run while it is held.
      const lock = result instanceof Promise ? await result : result;
      return await this.#guard.during(() => this.#holding(lock, lock !== result, decide, options.signal));
    } finally {
      end();
    }
  }

  atOnce(action: (checkpoint: Checkpoint) => void): boolean {
    const lock = this.#lock.tryTake();
    if (!lock) return false;
    try {
      const checkpoint = this.#folder.isCurrent ? this.#reader.read() : undefined;
      if (checkpoint && !checkpoint.refusal) action(checkpoint);
      return true;
    } finally {
      lock.release();
    }
  }

  async #holding<T>(lock: NativeLock, hasWaited: boolean, decide: Decide<T>, signal?: AbortSignal) {
    try {
      // While this process waited, another may have replaced the folder.
      if (hasWaited) this.#reader.checkCurrent();
      const found = explaining(this.path, () => this.#reader.loadChecked(lock));
      if (found.kind === 'good' && !found.checkpoint.refusal) this.#writer.mendCopyOnce(found);
      const checkpoint =
        found.kind === 'good'
          ? found.checkpoint
          : await this.#writer.recover(found, lock, () => this.#rejoin(signal));
      explaining(this.path, () => this.#folder.rejoinParts());
      if (checkpoint?.refusal) return await decide(checkpoint, refusing(this.path, checkpoint.refusal));
      const strays = checkpoint && this.isOfThisBoot(checkpoint) ? this.#owners.follow(checkpoint) : [];
      if (checkpoint && strays.length > 0)
        this.#writer.putStraysAside(this.#folder.owners, strays, checkpoint);
      let before = checkpoint?.assignments;
      return await decide(checkpoint, async (next, isLast = false) => {
        await this.#writer.commit({ bootId: this.#reader.bootId, before, next, lock, isLast });
        before = next;
      });
    } finally {
      lock.release();
    }
  }
}
