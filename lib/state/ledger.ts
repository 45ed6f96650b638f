// Ledger: the state folder. Readers take no lock and never see half a state; a transaction holds
// the lock, reloads, and commits durably.
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Assignments } from '../account/assignments.js';
import type { TotalOn } from '../account/booked-memory.js';
import { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { ENVIRONMENT, Registry } from '../base/registry.js';
import { WeakValues } from '../base/weak-values.js';
import { MACHINE_STATE_DIR } from '../input/config.js';
import { type Checkpoint, checkHoldings, encodeCheckpoint } from './files/checkpoint.js';
import { FolderWatch, type Listener } from './files/folder-watch.js';
import { type FoundState, findState, isOfBoot, PREVIOUS_FILE, STATE_FILE } from './files/state-files.js';
import { canonical, explain, explaining, folderError, partOf, readBootId, scopeOf, using } from './folder.js';
import { lockHolder, lockNote } from './owners/lock-holder.js';
import { OwnerWatch } from './owners/owner-watch.js';
import { Owners } from './owners/owners.js';
import { type Clues, flawOf, generationAfter, isUnused, lastGood, rebuild } from './owners/recovery.js';
import { StateFolder } from './state-folder.js';
import type { Commit, StatePart, StateRecovered, Store, TransactOptions } from './store.js';
import { FolderQueue, type WaitQueue } from './wait-queue.js';

export const ARCHIVE_FOLDER = 'archive';
const LOCK = 'lock';
// The highest generation that was committed: state.json may be put back from a copy.
const HIGHEST = 'generation';
// How often whoever waits for the lock looks whether it is free though his turn has not come.
const PASS_MS = 250;
const RESTORE_TIMEOUT_MS = 10_000;
const RESTORE_ATTEMPTS = 20;
const RESTORE_PAUSE_MS = 20;
// Within this time one of the processes that hear of an owner's end takes back what it had.
const OWNER_END_SPREAD_MS = 50;
const OWNER_END_LOOK_MS = 5;
const OWNER_END_LONGEST_MS = 5000;
// An owner may be writing its file outside of any transaction.
const OWNER_READS = 5;
// The kernel has told an owner that its file was removed; its event loop may be busy.
const MISSING_OWNER_READS = 300;
const OWNER_READ_PAUSE_MS = 10;

function refusing(refusal: NumalignError): Commit {
  return Object.assign(() => Promise.reject(refusal), { refusal });
}

type GoodState = Extract<FoundState, { kind: 'good' }>;

// By path: managers of one environment share what they have read and their owner.
const ledgers = () => new WeakValues<Ledger>();

/**
 * Open while it is in use: see {@link Store.use}. What comes later (a handle of a persistent grant,
 * say) opens it again for as long as it takes.
 */
export class Ledger implements Store {
  /** `machine`: /run/numalign, which speaks for the whole machine. `private`: any other folder. */
  readonly scope: 'machine' | 'private';
  readonly path: string;
  readonly registry: Registry<Store> = new Registry<Store>(this);
  readonly #users = new Set<object>();
  readonly #owners: Owners;
  readonly #waiters: WaitQueue;
  readonly #watch: FolderWatch;
  readonly #ownerWatch: OwnerWatch;
  readonly #onOwnerEnd = new Set<Listener>();
  readonly #open: StateFolder;
  readonly #folder: NativeFolder;
  #bootId = readBootId();
  readonly #recoveries: StateRecovered[] = [];
  // The last good file that was read, and its version.
  #good: GoodState | undefined;
  #version: string | undefined;
  #hasTransacted = false;
  // The highest that was seen: none comes twice.
  #generation = 0;
  #transactions = 0;
  // The own file may have been removed or changed.
  #isDisturbed = false;
  // Somebody has put another folder in the place of the one that was open.
  #isReplaced = false;
  // As the last transaction said.
  #totalOn: TotalOn = () => 0;

  private constructor(path: string, scope: Ledger['scope']) {
    this.path = path;
    this.scope = scope;
    this.#open = new StateFolder(path, scope);
    const { folder, owners, waiting } = this.#open;
    this.#folder = folder;
    this.#owners = new Owners(owners, scope === 'machine' ? MACHINE_STATE_DIR : path, this.#bootId);
    this.#waiters = new FolderQueue(waiting);
    this.#watch = new FolderWatch(path, STATE_FILE);
    this.#ownerWatch = new OwnerWatch(path, {
      closed: (name) => (this.#owners.isOwnProcess(name) ? this.#restore() : this.#mourn(name)),
      disturbed: (name) => {
        if (name === undefined || this.#owners.isOwnProcess(name)) this.#restore();
      },
      missed: () => {
        this.#restore();
        for (const uuid of this.#owners.withLeftGrants()) this.#mourn(uuid);
      },
    });
  }

  get recoveries(): readonly StateRecovered[] {
    return this.#recoveries;
  }

  get owners(): Owners {
    this.#wake();
    return this.#owners;
  }

  get waiters(): WaitQueue {
    this.#wake();
    return this.#waiters;
  }

  /** @throws ERR_STATE_FOLDER */
  part<Part extends StatePart>(name: string, make: (folder: NativeFolder, path: string) => Part): Part {
    this.#wake();
    return this.#open.part(name, make);
  }

  /** Opens the folder, or makes it. @throws ERR_STATE_FOLDER */
  static open(stateDir: string): Ledger {
    const path = canonical(stateDir);
    const all = ENVIRONMENT.of(ledgers);
    const known = all.get(path);
    if (known) {
      known.#ensureOpen();
      return known;
    }
    const ledger = new Ledger(path, scopeOf(path));
    all.add(path, ledger);
    all.hold(ledger);
    ledger.#restLater();
    return ledger;
  }

  use(): () => void {
    this.#ensureOpen();
    const user = {};
    this.#users.add(user);
    return () => {
      if (this.#users.delete(user)) this.#restUnused();
    };
  }

  // Till the end of this turn, where nothing else keeps it open. Where the folder is gone, this is
  // no reason to make another. @throws ERR_STATE_FOLDER
  #wake(): void {
    if (this.#open.isOpen) return;
    if (!existsSync(this.path)) throw this.#removedError();
    this.#ensureOpen();
  }

  // @throws ERR_STATE_FOLDER
  #ensureOpen(): void {
    if (this.#open.isOpen) return;
    this.#open.reopen();
    ENVIRONMENT.of(ledgers).hold(this);
    this.#restLater();
  }

  #restLater(): void {
    setImmediate(() => this.#restUnused()).unref();
  }

  // Nobody has to do with the state any more: what is open is closed, and what was read forgotten.
  #restUnused(): void {
    if (this.#users.size > 0 || this.#owners.holdsGrant || !this.#open.isOpen) return;
    this.#ownerWatch.stop();
    this.#owners.close();
    this.#open.close();
    this.#version = undefined;
    this.#forgetRead();
    // What was found out about it, and what the rooms know, is not to be had again.
    if (this.registry.isEmpty && this.#recoveries.length === 0) ENVIRONMENT.of(ledgers).letGo(this);
  }

  #forgetRead(): void {
    this.#hasTransacted = false;
    this.#good = undefined;
    this.#generation = 0;
  }

  // Somebody has removed the folder, or what is in it: it is opened or made again, and what this
  // process holds is written there. @throws ERR_STATE_FOLDER
  #ensureCurrent(): void {
    if (this.#open.isCurrent) return;
    this.#open.reopen();
    this.#isReplaced = true;
    // Before the own file is written, which may be removed again at once.
    this.#ownerWatch.restart();
    this.#watch.restart();
    this.#isDisturbed = this.#transactions > 0;
    if (!this.#isDisturbed) explaining(this.path, () => this.#owners.reassert());
  }

  // What is in the folder now comes before what was there: only where there is nothing, this
  // process knows more.
  #forgetReplaced(version: string | undefined): void {
    if (!this.#isReplaced || version === undefined) return;
    this.#isReplaced = false;
    this.#forgetRead();
  }

  // The own file was removed, or changed by somebody else, and perhaps the state with it.
  #restore(attempts = RESTORE_ATTEMPTS): void {
    if (!this.#open.isOpen) return;
    this.#isDisturbed = true;
    // At its end.
    if (this.#transactions > 0) return;
    this.#isDisturbed = false;
    try {
      const isFolderAmiss = this.#owners.holdsGrant && !this.#open.isCurrent;
      if (isFolderAmiss) this.#ensureCurrent();
      if (!this.#owners.reassert() && !isFolderAmiss) return;
    } catch {
      // What is there may be about to be removed. In the end the next transaction says why.
      if (attempts > 1) setTimeout(() => this.#restore(attempts - 1), RESTORE_PAUSE_MS).unref();
      return;
    }
    const options = { lockTimeoutMs: RESTORE_TIMEOUT_MS, totalOn: this.#totalOn };
    this.transact(options, async () => {}).catch(() => {});
  }

  // An owner has closed its file. The kernel says so just before it lets the lock go.
  #mourn(uuid: string, pauseMs = OWNER_END_LOOK_MS): void {
    const look = () => {
      if (!this.#open.isOpen) return;
      const hasEnded = this.#owners.hasEnded(uuid);
      if (!hasEnded && pauseMs < OWNER_END_LONGEST_MS) this.#mourn(uuid, 2 * pauseMs);
      if (!hasEnded) return;
      this.#watch.ring();
      setTimeout(tell, Math.random() * OWNER_END_SPREAD_MS).unref();
    };
    const tell = () => {
      const [listener] = this.#onOwnerEnd;
      if (listener && this.#owners.hasLeftGrants(uuid)) listener();
    };
    setTimeout(look, pauseMs).unref();
  }

  watchOwners(listener: Listener): () => void {
    const end = this.use();
    this.#onOwnerEnd.add(listener);
    this.#ownerWatch.start();
    return () => {
      this.#onOwnerEnd.delete(listener);
      // What this process holds is watched on.
      if (this.#onOwnerEnd.size === 0 && this.#owners.ownFd() === undefined) this.#ownerWatch.stop();
      end();
    };
  }

  /**
   * The newest committed checkpoint, undefined before the first commit. Synchronous: one stat, and
   * a read only where the file has changed. Where the file is damaged or gone, what can be told of
   * the state without writing anything.
   * @throws ERR_STATE_CORRUPT where that is nothing, ERR_STATE_VERSION, ERR_STATE_FOLDER,
   *   ERR_SYSCALL
   */
  read(): Checkpoint | undefined {
    this.#wake();
    const version = this.#folder.version(STATE_FILE);
    if (version !== undefined && version === this.#version) return this.#good?.checkpoint;
    return explaining(this.path, () => {
      const found = this.#load(version);
      if (found.kind === 'good') return found.checkpoint;
      this.#checkCurrent();
      return this.#view(this.#gather(found));
    });
  }

  // As {@link read}, of a file that is good.
  #readGood(): Checkpoint | undefined {
    const version = this.#folder.version(STATE_FILE);
    if (version !== undefined && version === this.#version) return this.#good?.checkpoint;
    const found = explaining(this.path, () => this.#load(version));
    return found.kind === 'good' ? found.checkpoint : undefined;
  }

  watch(listener: Listener, isQuiet = false): () => void {
    const end = this.use();
    const stop = this.#watch.add(listener, isQuiet);
    return () => {
      stop();
      end();
    };
  }

  // A commit may come between the caller's stat and this read: the version is then too old, and the
  // next read looks again.
  #load(version: string | undefined): FoundState {
    this.#version = undefined;
    this.#forgetReplaced(version);
    const found = findState(this.#folder, STATE_FILE, this.#good);
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    if (checkpoint.generation < this.#generation) {
      const why = `it is older than generation ${this.#generation}, which was here before`;
      return { kind: 'damaged', why, generation: checkpoint.generation, checkpoint };
    }
    this.#generation = checkpoint.generation;
    this.#good = found;
    this.#version = version;
    return found;
  }

  // A whole file may have been put back from a copy. An opener has seen no generation yet, but
  // living owners have.
  #checkPast(found: FoundState): FoundState {
    const isFirst = !this.#hasTransacted;
    this.#hasTransacted = true;
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    this.#adoptBoot(checkpoint);
    const highest = this.#highest();
    const isOlder = highest > checkpoint.generation;
    const isAsked = isFirst && this.isOfThisBoot(checkpoint);
    const why = isOlder
      ? `it is older than generation ${highest}, which was committed here`
      : isAsked && flawOf(checkpoint, this.#owners.find());
    return why ? { kind: 'damaged', why, generation: checkpoint.generation, checkpoint } : found;
  }

  // 0 where there is no such file, or somebody has put something else there. Longer numbers leave
  // no room to count on.
  #highest(): number {
    try {
      const text = this.#folder.read(HIGHEST)?.toString('latin1') ?? '';
      return /^\d{1,15}$/.test(text) ? Number(text) : 0;
    } catch (error) {
      if (error instanceof NumalignError) return 0;
      throw error;
    }
  }

  // Under the id of the others, so that what this process commits is of this boot for them too.
  #adoptBoot({ bootId }: Checkpoint): void {
    if (bootId === this.#bootId || !isOfBoot(bootId, this.#bootId, this.#open.owners)) return;
    this.#bootId = bootId;
    this.#owners.renameBoot(bootId);
  }

  #gather(found: FoundState): Clues {
    const previous = findState(this.#folder, PREVIOUS_FILE);
    const base = lastGood([found, previous], this.#good?.checkpoint);
    if (base) this.#adoptBoot(base);
    return { found, previous, base, owners: this.#owners.find(), highest: this.#highest() };
  }

  // The state as it is put together from what is left of it.
  #view(clues: Clues): Checkpoint | undefined {
    const rebuilt = rebuild(clues, this.#bootId, this.#totalOn);
    const generation = Math.max(this.#generation, generationAfter(clues) - 1);
    return rebuilt && { ...rebuilt, generation, writtenAt: new Date().toISOString() };
  }

  /** Whether the checkpoint is of this boot: grants of an earlier one are void. */
  isOfThisBoot(checkpoint: Checkpoint): boolean {
    return checkpoint.bootId === this.#bootId;
  }

  /**
   * Runs `decide` under the lock. It gets a freshly read checkpoint and a `commit` that writes the
   * next one durably and may be called once; everything it does is one step for all other
   * processes.
   * @throws ERR_LOCK_TIMEOUT, the signal's reason, ERR_STATE_FOLDER where the folder was removed,
   *   and what `decide` throws.
   */
  async transact<T>(
    options: TransactOptions,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T> {
    options.signal?.throwIfAborted();
    const end = this.use();
    try {
      return await this.#transact(options, decide);
    } finally {
      end();
    }
  }

  async #transact<T>(
    options: TransactOptions,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T> {
    this.#ensureCurrent();
    this.#totalOn = options.totalOn;
    const known = this.#readGood();
    // Not a byte of a newer format is touched, those of the lock's file neither.
    if (known?.refusal) return decide(known, refusing(known.refusal));
    const note = lockNote();
    const lock = explaining(this.path, () => this.#folder.tryLock(LOCK, note));
    // In one go where the lock is free: it must not be held while the caller's own code runs.
    if (lock) return this.#holding(lock, decide);
    return this.#holding(await this.#waitForLock(note, options), decide);
  }

  async #holding<T>(
    lock: NativeLock,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T> {
    this.#transactions++;
    try {
      this.#checkCurrent();
      // By its bytes: what is granted must not hang on two versions never looking the same.
      const found = explaining(this.path, () =>
        this.#checkPast(this.#load(this.#folder.version(STATE_FILE))),
      );
      const checkpoint = found.kind === 'good' ? found.checkpoint : await this.#recover(found, lock);
      explaining(this.path, () => this.#open.rejoinParts());
      if (checkpoint?.refusal) return await decide(checkpoint, refusing(checkpoint.refusal));
      if (checkpoint && this.isOfThisBoot(checkpoint)) this.#owners.follow(checkpoint);
      return await decide(checkpoint, (next, isLast = false) =>
        this.#commit(this.#bootId, checkpoint?.assignments, next, lock, isLast),
      );
    } finally {
      lock.release();
      this.#transactions--;
      if (this.#isDisturbed || !this.#ownerWatch.isActive) this.#restore();
    }
  }

  #checkCurrent(): void {
    if (!this.#folder.isCurrent()) throw this.#removedError();
  }

  #removedError(): NumalignError {
    return folderError(this.path, 'it was removed or replaced while it was open');
  }

  // Puts the state together again and writes it twice, so that the generation before is a good one
  // too. Undefined where nothing is left of it.
  async #recover(found: FoundState, lock: NativeLock): Promise<Checkpoint | undefined> {
    let clues = explaining(this.path, () => this.#gather(found));
    const mayAnswer = ({ owners: { unknown } }: Clues, reads: number) =>
      unknown.some(({ isFileMissing }) => reads < (isFileMissing ? MISSING_OWNER_READS : OWNER_READS));
    for (let reads = 1; mayAnswer(clues, reads); reads++) {
      await pause(OWNER_READ_PAUSE_MS);
      clues = explaining(this.path, () => this.#gather(found));
    }
    if (isUnused(clues)) {
      this.#generation = Math.max(this.#generation, clues.highest);
      return undefined;
    }
    const view = this.#view(clues);
    if (view?.refusal) return view;
    const quarantined = explaining(this.path, () => [
      ...this.#quarantine(STATE_FILE, clues.found),
      ...this.#quarantine(PREVIOUS_FILE, clues.previous),
    ]);
    // Where no good generation is known, higher ones may have been seen than any that is left.
    this.#generation = Math.max(this.#generation, generationAfter(clues), clues.base ? 0 : Date.now());
    if (view) {
      if (clues.base && !this.isOfThisBoot(clues.base) && this.isOfThisBoot(view))
        await this.archive(clues.base);
      await this.#commit(view.bootId, undefined, view.assignments, lock);
      await this.#commit(view.bootId, view.assignments, view.assignments, lock);
    }
    const checkpoint = view && this.#good?.checkpoint;
    const kept = (checkpoint?.assignments.pods ?? []).map(({ uid }) => uid);
    this.#recoveries.push(this.#recovered(clues, quarantined, kept));
    return checkpoint;
  }

  #recovered(
    { found, base }: Clues,
    quarantined: readonly string[],
    kept: readonly string[],
  ): StateRecovered {
    const why = found.kind === 'damaged' ? found.why : `there was no ${STATE_FILE}`;
    const from = base ? `generation ${base.generation} and ` : '';
    const grants = `${kept.length} grant${kept.length === 1 ? '' : 's'}`;
    const message = `the state in ${this.path} was damaged (${why}) and has been put together again from ${from}the files of living owners, with ${grants}`;
    return Object.freeze({
      code: 'STATE_RECOVERED',
      message,
      quarantined,
      generation: this.#generation,
      kept,
    });
  }

  /** Moves a damaged file aside. Answers its name there, if any. */
  #quarantine(name: string, { kind }: FoundState): string[] {
    if (kind !== 'damaged') return [];
    return using(partOf(this.#folder, 'quarantine'), (quarantine) => {
      const time = new Date().toISOString().replace(/[-:]/g, '');
      let aside = `${time}-${name}`;
      for (let n = 2; quarantine.version(aside) !== undefined; n++) aside = `${time}.${n}-${name}`;
      this.#folder.move(name, quarantine, aside);
      return [aside];
    });
  }

  /**
   * Keeps a copy of a checkpoint of an earlier boot in archive/; answers its name below the folder.
   * REQUIRES: the lock.
   */
  async archive(checkpoint: Checkpoint): Promise<string> {
    const name = `${checkpoint.bootId.replace(/[^0-9a-z-]/g, '')}-${checkpoint.generation}.json`;
    await using(partOf(this.#folder, ARCHIVE_FOLDER), (archive) =>
      archive.replaceDurably(name, '', Buffer.from(encodeCheckpoint(checkpoint)), 0),
    );
    return `${ARCHIVE_FOLDER}/${name}`;
  }

  async #commit(
    bootId: string,
    before: Assignments | undefined,
    next: Assignments,
    lock: NativeLock,
    isLast = false,
  ): Promise<void> {
    // A mistake of ours must not become the record.
    checkHoldings(next);
    const generation = this.#generation + 1;
    const checkpoint = { generation, bootId, writtenAt: new Date().toISOString(), assignments: next };
    const bytes = Buffer.from(encodeCheckpoint(checkpoint));
    const settle =
      bootId === this.#bootId
        ? explaining(this.path, () => this.#owners.claim(generation - 1, before, next))
        : undefined;
    let version: string | undefined;
    try {
      version = await this.#replaceState(bytes, generation, lock, isLast);
    } catch (error) {
      // The new file may be in place although syncing the folder failed: then everybody sees it,
      // and it counts.
      const found = this.#load(undefined);
      if (found.kind !== 'good' || !found.bytes.equals(bytes)) {
        settle?.(false);
        throw explain(this.path, error);
      }
    }
    settle?.(true);
    // What was written need not be decoded, where that is what is read.
    this.#good = { kind: 'good', checkpoint, bytes };
    this.#version = version;
    this.#generation = Math.max(this.#generation, generation);
    if (isLast) return;
    // What is decided next is decided on it.
    const found = this.#load(this.#folder.version(STATE_FILE));
    if (settle && found.kind === 'good') this.#owners.follow(found.checkpoint);
  }

  async #replaceState(bytes: Buffer, generation: number, lock: NativeLock, isLast: boolean): Promise<string> {
    const stamp = generation % 1_000_000_000;
    const replace = () =>
      this.#folder.replaceDurably(
        STATE_FILE,
        PREVIOUS_FILE,
        bytes,
        stamp,
        lock,
        isLast,
        HIGHEST,
        `${generation}`,
      );
    try {
      return await replace();
    } catch (error) {
      if (!(error instanceof NumalignError) || error.errnoName !== 'EISDIR') throw error;
      // A folder under one of the names that a commit uses.
      for (const name of [PREVIOUS_FILE, `${PREVIOUS_FILE}.new`, `${STATE_FILE}.new`]) {
        const found = findState(this.#folder, name);
        if (found.kind === 'damaged' && found.isFolder) this.#quarantine(name, found);
      }
      return await replace();
    }
  }

  // A thread of the addon waits in the kernel; neither the event loop nor libuv's pool is held up.
  #waitForLock(note: string, { signal, lockTimeoutMs }: TransactOptions): Promise<NativeLock> {
    const folder = this.#folder;
    return new Promise((resolve, reject) => {
      let settled = false;
      const request = folder.waitLock(LOCK, note, (error, lock) => {
        if (settled) lock?.release();
        else settle(() => (lock ? resolve(lock) : reject(explain(this.path, error))));
      });
      const giveUp = (reason: unknown) => settle(() => reject(reason));
      // A stopped process that waits must not keep everybody from a lock that is free.
      const take = () => {
        try {
          const lock = folder.tryLock(LOCK, note, true);
          if (lock) settle(() => resolve(lock));
        } catch (error) {
          settle(() => reject(explain(this.path, error)));
        }
      };
      const pass = setInterval(take, PASS_MS);
      const onAbort = () => giveUp(signal!.reason);
      const late = () => {
        if (!settled) take();
        if (!settled) giveUp(this.#timeoutError(lockTimeoutMs));
      };
      // This process may have been held up itself: it may have the lock already, and hears of it
      // only after its timers.
      const timer = setTimeout(() => setImmediate(late), lockTimeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      function settle(how: () => void) {
        settled = true;
        clearTimeout(timer);
        clearInterval(pass);
        signal?.removeEventListener('abort', onAbort);
        // Where it was answered already there is nothing to give up.
        folder.giveUp(request);
        how();
      }
    });
  }

  #timeoutError(lockTimeoutMs: number): NumalignError {
    const { holder, pid, isStopped } = lockHolder(this.#folder.read(LOCK)?.toString('utf8') ?? '');
    const stopped = isStopped ? `, which is stopped: continue it (kill -CONT ${pid}) or end it` : '';
    return new NumalignError(
      'ERR_LOCK_TIMEOUT',
      `the state in ${this.path} is locked by process ${holder}${stopped}; gave up after ${lockTimeoutMs} ms`,
      { holder, pid, stopped: isStopped, lockTimeoutMs },
    );
  }
}
