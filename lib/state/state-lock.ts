// StateLock: the lock under which a state is changed, by one process at a time.
import { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { LOCK_FILE } from './files/state-files.js';
import { explain, explaining } from './folder/folder-error.js';
import { lockHolder, lockNote } from './owners/lock-holder.js';
import type { TransactOptions } from './store.js';

// How often whoever waits for the lock looks whether it is free though his turn has not come.
const PASS_MS = 250;

export class StateLock {
  readonly #path: string;
  readonly #folder: NativeFolder;

  /** `folder`: the state folder at `path`. */
  constructor(path: string, folder: NativeFolder) {
    this.#path = path;
    this.#folder = folder;
  }

  /**
   * At once where it is free and nobody waits.
   * @throws ERR_LOCK_TIMEOUT, the signal's reason, ERR_STATE_FOLDER, ERR_SYSCALL
   */
  take(options: TransactOptions): NativeLock | Promise<NativeLock> {
    const note = lockNote();
    const lock = explaining(this.#path, () => this.#folder.tryLock(LOCK_FILE, note));
    return lock ?? this.#wait(note, options);
  }

  // A thread of the addon waits in the kernel; neither the event loop nor libuv's pool is held up.
  #wait(note: string, { signal, lockTimeoutMs }: TransactOptions): Promise<NativeLock> {
    const folder = this.#folder;
    return new Promise((resolve, reject) => {
      let settled = false;
      const request = folder.waitLock(LOCK_FILE, note, (error, lock) => {
        if (settled) lock?.release();
        else settle(() => (lock ? resolve(lock) : reject(explain(this.#path, error))));
      });
      const giveUp = (reason: unknown) => settle(() => reject(reason));
      // A stopped process that waits must not keep everybody from a lock that is free.
      const take = () => {
        try {
          const lock = folder.tryLock(LOCK_FILE, note, true);
          if (lock) settle(() => resolve(lock));
        } catch (error) {
          settle(() => reject(explain(this.#path, error)));
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
    const text = this.#folder.read(LOCK_FILE)?.toString('utf8') ?? '';
    // Its first line is the number.
    const { holder, pid, isStopped } = lockHolder(text.slice(text.indexOf('\n') + 1));
    const stopped = isStopped ? `, which is stopped: continue it (kill -CONT ${pid}) or end it` : '';
    return new NumalignError(
      'ERR_LOCK_TIMEOUT',
      `the state in ${this.#path} is locked by process ${holder}${stopped}; gave up after ${lockTimeoutMs} ms`,
      { holder, pid, stopped: isStopped, lockTimeoutMs },
    );
  }
}
