// StateLock: the lock of a state. Only its holder changes the state.
import { NumalignError, unlessRefused } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import type { JournalFollower } from './files/journal-follower.js';
import { LOCK_FILE, STATE_FILE } from './files/state-files.js';
import { explain, explaining } from './folder/folder-error.js';
import { lockHolder, lockNote } from './owners/lock-holder.js';
import type { TransactOptions } from './store.js';

// How often a waiter looks whether it may take a free lock out of turn: if nothing is committed for
// a while. In a live crowd it would take steps from another's turn.
const PASS_MS = 250;
const QUIET_MS = 5;

export class StateLock {
  // The requests of this environment that wait, in order.
  readonly #waiting = new Set<unknown>();

  /**
   * `folder`: the state folder at `path`. `prepare`: does what a holder would do first, while another
   * has the lock.
   */
  constructor(
    private readonly path: string,
    private readonly folder: NativeFolder,
    private readonly prepare: () => void,
  ) {}

  /**
   * Takes the lock synchronously if it is free and no request waits. Serves the requests of this
   * environment in order.
   * @throws ERR_LOCK_TIMEOUT, the signal's reason, ERR_STATE_FOLDER, ERR_SYSCALL
   */
  take(options: TransactOptions): NativeLock | Promise<NativeLock> {
    const note = lockNote();
    return this.tryTake(note) ?? this.#wait(note, options);
  }

  /** Undefined if it is not free, or a request waits. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
  tryTake(note = lockNote()): NativeLock | undefined {
    if (this.#waiting.size > 0) return undefined;
    return explaining(this.path, () => this.folder.tryLock(LOCK_FILE, note));
  }

  /**
   * The same for a state that is known, if it has at most a few more lines and the folders are those
   * that are open.
   */
  tryBegin({ file, good, limit }: JournalFollower, inside: readonly NativeFolder[]): NativeLock | undefined {
    if (this.#waiting.size > 0 || !file || !good || good.checkpoint.refusal) return undefined;
    const { generation } = good.checkpoint;
    return explaining(this.path, () =>
      this.folder.begin(LOCK_FILE, lockNote(), file, generation, limit, ...inside),
    );
  }

  // A thread of the addon waits in the kernel, so neither the event loop nor libuv's pool is
  // blocked.
  #wait(note: string, { signal, lockTimeoutMs }: TransactOptions): Promise<NativeLock> {
    const folder = this.folder;
    return new Promise((resolve, reject) => {
      let isSettled = false;
      const answer = (error?: NumalignError, lock?: NativeLock) => {
        if (isSettled) lock?.release();
        else settle(() => (lock ? resolve(lock) : reject(explain(this.path, error))));
      };
      const request = folder.waitLock(LOCK_FILE, note, answer, () => {
        if (!isSettled) this.prepare();
      });
      const giveUp = (reason: unknown) => settle(() => reject(reason));
      // A stopped waiter must not keep all others from a free lock.
      const take = () => {
        if (!isFirst()) return;
        try {
          const lock = folder.tryLock(LOCK_FILE, note, true);
          if (lock) settle(() => resolve(lock));
        } catch (error) {
          settle(() => reject(explain(this.path, error)));
        }
      };
      const isFirst = () => settle === this.#waiting.values().next().value;
      const version = () => unlessRefused(() => folder.version(STATE_FILE));
      let quiet: NodeJS.Timeout | undefined;
      const pass = setInterval(() => {
        if (!isFirst()) return;
        // Falls behind by less than a whole file.
        this.prepare();
        const before = version();
        quiet = setTimeout(() => before === version() && take(), QUIET_MS);
      }, PASS_MS);
      const onAbort = () => giveUp(signal!.reason);
      const late = () => {
        if (!isSettled) take();
        if (!isSettled) giveUp(this.#timeoutError(lockTimeoutMs));
      };
      // This process may have been stopped itself. It may have the lock already, and timers run
      // before that news.
      const timer = setTimeout(() => setImmediate(late), lockTimeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      const settle = (how: () => void) => {
        isSettled = true;
        this.#waiting.delete(settle);
        clearTimeout(timer);
        clearInterval(pass);
        clearTimeout(quiet);
        signal?.removeEventListener('abort', onAbort);
        // If the wait is over, this does nothing.
        folder.giveUp(request);
        how();
      };
      this.#waiting.add(settle);
    });
  }

  #timeoutError(lockTimeoutMs: number): NumalignError {
    const text = unlessRefused(() => this.folder.read(LOCK_FILE))?.toString('utf8') ?? '';
    // The first line of the file is a number.
    const { holder, pid, isStopped } = lockHolder(text.slice(text.indexOf('\n') + 1));
    const stopped = isStopped ? `, which is stopped: continue it (kill -CONT ${pid}) or end it` : '';
    return new NumalignError(
      'ERR_LOCK_TIMEOUT',
      `the state in ${this.path} is locked by process ${holder}${stopped}; gave up after ${lockTimeoutMs} ms`,
      { holder, pid, stopped: isStopped, lockTimeoutMs },
    );
  }
}
