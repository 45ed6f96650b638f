// FolderWatch: tells at once when somebody commits or stops waiting, and looks every half a second
// for what tells nobody: that an owner has died. Quiet listeners are told of what the kernel tells
// only.
import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';

/**
 * Told of everything that may have changed who holds what. It says only that a look is worth while.
 */
export type Listener = () => void;

const PERIOD_MS = 500;
// Where the kernel has no watch left to give (inotify's limits).
const PERIOD_WITHOUT_INOTIFY_MS = 50;

/**
 * Watches while it has listeners, and keeps the process alive as long as one of them is not quiet.
 */
export class FolderWatch {
  readonly #path: string;
  readonly #file: string;
  readonly #listeners = new Set<Listener>();
  readonly #quiet = new Set<Listener>();
  #watchers: FSWatcher[] | undefined;
  #isNotified = false;
  #timer: NodeJS.Timeout | undefined;
  #isTelling = false;

  /** `file`: the one in the folder that commits replace. */
  constructor(path: string, file: string) {
    this.#path = path;
    this.#file = file;
  }

  /**
   * Answers how to end it. `isQuiet`: it does not keep the process alive, and may not be told of
   * everything.
   */
  add(listener: Listener, isQuiet = false): () => void {
    // Wrapped, so that one function can listen twice.
    const own = () => listener();
    const listeners = isQuiet ? this.#quiet : this.#listeners;
    listeners.add(own);
    this.#follow();
    return () => {
      if (listeners.delete(own)) this.#follow();
    };
  }

  /** Calls everybody that listens: something has happened that the folder does not show. */
  ring(): void {
    this.#tell();
  }

  /** Another folder is at the path. */
  restart(): void {
    if (this.#watchers === undefined) return;
    this.#stop();
    this.#follow();
  }

  #follow(): void {
    const isWanted = this.#listeners.size + this.#quiet.size > 0;
    if (isWanted && this.#watchers === undefined) this.#start();
    if (!isWanted) this.#stop();
    const isKept = this.#listeners.size > 0;
    for (const watcher of this.#watchers ?? []) {
      if (isKept) watcher.ref();
      else watcher.unref();
    }
    if (isKept === (this.#timer !== undefined)) return;
    clearInterval(this.#timer);
    const period = this.#isNotified ? PERIOD_MS : PERIOD_WITHOUT_INOTIFY_MS;
    this.#timer = isKept ? setInterval(() => this.#tell(), period) : undefined;
  }

  #start(): void {
    this.#watchers = [];
    this.#isNotified = this.#watch(this.#path, this.#file) && this.#watch(join(this.#path, 'waiting'));
  }

  #stop(): void {
    for (const watcher of this.#watchers ?? []) watcher.close();
    this.#watchers = undefined;
  }

  // inotify(7), through Node. False where the kernel refuses.
  #watch(path: string, file?: string): boolean {
    try {
      const watcher = watch(path, (_, name) => {
        if (file === undefined || name === null || name === file) this.#tell();
      });
      watcher.on('error', () => watcher.close());
      this.#watchers?.push(watcher);
      return true;
    } catch {
      return false;
    }
  }

  // Once for all that happens in one turn of the event loop.
  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      for (const listener of [...this.#listeners, ...this.#quiet]) listener();
    });
  }
}
