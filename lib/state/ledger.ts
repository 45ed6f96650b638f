// Ledger: the state folder. Readers take no lock and never see half a state; a transaction holds the lock, reloads, and commits durably.
import { existsSync, lstatSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { MACHINE_STATE_DIR } from '../config.js';
import { NumalignError } from '../errors.js';
import { type NativeFolder, type NativeLock, native } from '../native.js';
import type { Assignments } from './assignments.js';
import { type Checkpoint, decodeCheckpoint, encodeCheckpoint } from './checkpoint.js';
import { FolderWatch, type Listener } from './folder-watch.js';
import { Owners, processCommand } from './owners.js';
import type { Commit, Store, TransactOptions } from './store.js';
import { FolderQueue, type WaitQueue } from './wait-queue.js';

export const STATE_FILE = 'state.json';
export const PREVIOUS_FILE = 'state.prev.json';
export const ARCHIVE_FOLDER = 'archive';
const LOCK = 'lock';
const GROUP = 'numalign';
// The machine's folder belongs to its group, new files in it too; a private one to its user alone.
const MACHINE_MODE = 0o2770;
const PRIVATE_MODE = 0o700;

/** Differs from boot to boot. */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

// The group that shares the machine's folder, or -1 where the machine has none of that name.
function groupId(): number {
  const group = readFileSync('/etc/group', 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`${GROUP}:`));
  return group === undefined ? -1 : Number(group.split(':')[2]);
}

function folderError(path: string, message: string, cause?: unknown): NumalignError {
  return new NumalignError('ERR_STATE_FOLDER', `the state folder ${path} cannot be used: ${message}`, {
    value: path,
    valid: `a folder that you own, or ${path} made for you: mode 2770, group ${GROUP}, of which you are a member`,
    cause,
  });
}

// What an errno of the folder or of a file in it means to somebody who chose the folder.
function explain(path: string, error: unknown): unknown {
  if (!(error instanceof NumalignError) || error.code !== 'ERR_SYSCALL') return error;
  const denied =
    path === MACHINE_STATE_DIR
      ? `only root and members of the group ${GROUP} may use it; set stateDir for a private one`
      : 'permission denied';
  const reasons: Record<string, string> = {
    ELOOP: 'it is a symbolic link, and links are not followed',
    ENOTDIR: 'it is a link or no folder',
    ENOENT: 'the folder above it does not exist',
    EACCES: denied,
    EPERM: denied,
    EROFS: 'its file system is read-only',
  };
  const reason = reasons[error.errnoName ?? ''];
  return reason === undefined ? error : folderError(path, reason, error);
}

function explaining<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw explain(path, error);
  }
}

// Without links in the folders above, so that one folder has one name. The last part is checked by opening it.
function canonical(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch (cause) {
    throw folderError(path, 'the folder above it does not exist, or is closed to you', cause);
  }
}

// As Folder.identity, without opening; undefined where there is nothing.
function identityOf(path: string): string | undefined {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

/** Whether a state, or the one before it, is in the folder. Opens and makes nothing. */
export function hasState(stateDir: string): boolean {
  return [STATE_FILE, PREVIOUS_FILE].some((name) => existsSync(join(stateDir, name)));
}

/** `machine` for /run/numalign, by whatever name: through links in the folders above, or as a bind mount. Opens and makes nothing. */
export function scopeOf(stateDir: string): 'machine' | 'private' {
  if (!existsSync(dirname(stateDir))) return 'private';
  const path = canonical(stateDir);
  const identity = identityOf(path);
  const isMachine =
    path === MACHINE_STATE_DIR || (identity !== undefined && identity === identityOf(MACHINE_STATE_DIR));
  return isMachine ? 'machine' : 'private';
}

// Who can write the folder can revoke anyone's grant, so strangers must not be able to.
function checkOwner(path: string, folder: NativeFolder): void {
  const { user, mode } = folder.owner();
  const self = process.geteuid?.() ?? 0;
  if (user !== self && user !== 0) throw folderError(path, `it belongs to user ${user}, neither to you nor to root`);
  if (mode & 0o002) throw folderError(path, `everybody may write it (mode ${mode.toString(8)})`);
}

// One for each folder: managers of one environment share what they have read and their owner. Kept for the life of the environment, since closing a
// manager leaves its grants as they are.
const ledgers = new Map<string, Ledger>();

export class Ledger implements Store {
  /** `machine`: /run/numalign, which speaks for the whole machine. `private`: any other folder. */
  readonly scope: 'machine' | 'private';
  readonly path: string;
  readonly owners: Owners;
  readonly waiters: WaitQueue;
  readonly #watch: FolderWatch;
  readonly #folder: NativeFolder;
  readonly #bootId = readBootId();
  #checkpoint: Checkpoint | undefined;
  #version: string | undefined;
  #bytes: Buffer | undefined;

  private constructor(path: string, scope: Ledger['scope'], folder: NativeFolder) {
    this.path = path;
    this.scope = scope;
    this.#folder = folder;
    this.owners = new Owners(folder.child('owners', true, folder.owner().mode, -1));
    this.waiters = new FolderQueue(folder.child('waiting', true, folder.owner().mode, -1));
    this.#watch = new FolderWatch(path, STATE_FILE);
  }

  /** Opens the folder, or makes it. @throws ERR_STATE_FOLDER */
  static open(stateDir: string): Ledger {
    const path = canonical(stateDir);
    // Looked up before it is opened again: descriptors of forgotten folders would wait for the garbage collector.
    const identity = identityOf(path);
    const known = ledgers.get(identity ?? '');
    if (known?.path === path) return known;
    const scope = scopeOf(path);
    return explaining(path, () => {
      const folder =
        scope === 'machine'
          ? native.Folder.open(path, true, MACHINE_MODE, groupId())
          : native.Folder.open(path, true, PRIVATE_MODE, -1);
      checkOwner(path, folder);
      const ledger = new Ledger(path, scope, folder);
      ledgers.set(folder.identity(), ledger);
      return ledger;
    });
  }

  /**
   * The newest committed checkpoint, undefined before the first commit. Synchronous: one stat, and a read only where the file has changed.
   * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION, ERR_SYSCALL
   */
  read(): Checkpoint | undefined {
    const version = this.#folder.version(STATE_FILE);
    if (version !== this.#version) this.#reload(version);
    return this.#checkpoint;
  }

  watch(listener: Listener): () => void {
    return this.#watch.add(listener);
  }

  // A commit may come between the caller's stat and this read: the version is then too old, and the next read looks again.
  #reload(version: string | undefined): Checkpoint | undefined {
    const bytes = this.#folder.read(STATE_FILE);
    if (!bytes || !this.#bytes?.equals(bytes)) this.#checkpoint = bytes && decodeCheckpoint(bytes);
    this.#bytes = bytes;
    this.#version = version;
    return this.#checkpoint;
  }

  /** Whether the checkpoint is of this boot: grants of an earlier one are void. */
  isOfThisBoot(checkpoint: Checkpoint): boolean {
    return checkpoint.bootId === this.#bootId;
  }

  /**
   * Runs `decide` under the lock. It gets a freshly read checkpoint and a `commit` that writes the next one durably and may be called once;
   * everything it does is one step for all other processes.
   * @throws ERR_LOCK_TIMEOUT, the signal's reason, ERR_STATE_FOLDER where the folder was removed, and what `decide` throws.
   */
  transact<T>(
    options: TransactOptions,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T> {
    options.signal?.throwIfAborted();
    this.#checkCurrent();
    const note = `${process.pid} ${processCommand()}\n`;
    const lock = explaining(this.path, () => this.#folder.tryLock(LOCK, note));
    // In one go where the lock is free: it must not be held while the caller's own code runs.
    if (lock) return this.#holding(lock, decide);
    return this.#waitForLock(note, options).then((waited) => this.#holding(waited, decide));
  }

  async #holding<T>(
    lock: NativeLock,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T> {
    try {
      this.#checkCurrent();
      // By its bytes: what is granted must not hang on two versions never looking the same.
      const checkpoint = this.#reload(this.#folder.version(STATE_FILE));
      return await decide(checkpoint, (next, isLast = false) =>
        this.#commit((checkpoint?.generation ?? 0) + 1, next, isLast ? lock : undefined),
      );
    } finally {
      lock.release();
    }
  }

  #checkCurrent(): void {
    if (!this.#folder.isCurrent()) throw folderError(this.path, 'it was removed or replaced while it was open');
  }

  /** Refuses to begin a new state where an earlier one has left traces. REQUIRES: the lock. @throws ERR_STATE_CORRUPT */
  checkUnused(): void {
    const traces =
      this.#folder.version(PREVIOUS_FILE) !== undefined
        ? PREVIOUS_FILE
        : this.owners.anyAlive()
          ? 'owners/'
          : undefined;
    if (traces === undefined) return;
    throw new NumalignError(
      'ERR_STATE_CORRUPT',
      `${this.path} has ${traces} of an earlier state but no ${STATE_FILE}: nothing is granted without it`,
      {
        value: traces,
      },
    );
  }

  /** Keeps a copy of a checkpoint of an earlier boot in archive/; answers its name below the folder. REQUIRES: the lock. */
  async archive(checkpoint: Checkpoint): Promise<string> {
    const name = `${checkpoint.bootId.replace(/[^0-9a-z-]/g, '')}-${checkpoint.generation}.json`;
    await this.#folder
      .child(ARCHIVE_FOLDER, true, this.#folder.owner().mode, -1)
      .replaceDurably(name, '', encodeCheckpoint(checkpoint), 0);
    return `${ARCHIVE_FOLDER}/${name}`;
  }

  async #commit(generation: number, assignments: Assignments, lock: NativeLock | undefined): Promise<void> {
    const checkpoint = { generation, bootId: this.#bootId, writtenAt: new Date().toISOString(), assignments };
    const stamp = generation % 1_000_000_000;
    try {
      await this.#folder.replaceDurably(STATE_FILE, PREVIOUS_FILE, encodeCheckpoint(checkpoint), stamp, lock);
    } catch (error) {
      // The new file may be in place although syncing the folder failed: then everybody sees it, and it counts.
      if (this.#reload(undefined)?.generation !== generation) throw explain(this.path, error);
    }
  }

  // A thread of the addon waits in the kernel; neither the event loop nor libuv's pool is held up.
  #waitForLock(note: string, { signal, lockTimeoutMs }: TransactOptions): Promise<NativeLock> {
    const folder = this.#folder;
    return new Promise((resolve, reject) => {
      let settled = false;
      const request = folder.waitLock(LOCK, note, (error, lock) => {
        if (settled) lock?.release();
        else settle(() => (lock ? resolve(lock) : reject(error)));
      });
      const giveUp = (reason: unknown) =>
        settle(() => {
          folder.giveUp(request);
          reject(reason);
        });
      const onAbort = () => giveUp(signal?.reason);
      const timer = setTimeout(() => giveUp(this.#timeoutError(lockTimeoutMs)), lockTimeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      function settle(how: () => void) {
        settled = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        how();
      }
    });
  }

  #timeoutError(lockTimeoutMs: number): NumalignError {
    const holder = this.#folder.read(LOCK)?.toString('utf8').trim() || 'an unknown process';
    return new NumalignError(
      'ERR_LOCK_TIMEOUT',
      `the state in ${this.path} is locked by process ${holder}; gave up after ${lockTimeoutMs} ms`,
      { holder, lockTimeoutMs },
    );
  }
}
