// FolderWatch: tells at once when somebody commits or stops waiting, and looks every half a second for what tells nobody: that an owner has died.
import { type FSWatcher, watch } from 'node:fs';
import { join } from 'node:path';

/** Told of everything that may have changed who holds what. It says only that a look is worth while. */
export type Listener = () => void;

const PERIOD_MS = 500;
// Where the kernel has no watch left to give (inotify's limits).
const PERIOD_WITHOUT_INOTIFY_MS = 50;

/** Watches while it has listeners, and keeps the process alive as long. */
export class FolderWatch {
  readonly #path: string;
  readonly #file: string;
  readonly #listeners = new Set<Listener>();
  #watchers: FSWatcher[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isTelling = false;

  /** `file`: the one in the folder that commits replace. */
  constructor(path: string, file: string) {
    this.#path = path;
    this.#file = file;
  }

  /** Answers how to end it. */
  add(listener: Listener): () => void {
    // Wrapped, so that one function can listen twice.
    const own = () => listener();
    this.#listeners.add(own);
    if (this.#listeners.size === 1) this.#start();
    return () => {
      if (this.#listeners.delete(own) && this.#listeners.size === 0) this.#stop();
    };
  }

  #start(): void {
    const isNotified = this.#watch(this.#path, this.#file) && this.#watch(join(this.#path, 'waiting'));
    this.#timer = setInterval(() => this.#tell(), isNotified ? PERIOD_MS : PERIOD_WITHOUT_INOTIFY_MS);
  }

  #stop(): void {
    clearInterval(this.#timer);
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }

  // inotify(7), through Node. False where the kernel refuses.
  #watch(path: string, file?: string): boolean {
    try {
      const watcher = watch(path, (_, name) => {
        if (file === undefined || name === null || name === file) this.#tell();
      });
      watcher.on('error', () => watcher.close());
      this.#watchers.push(watcher);
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
      for (const listener of [...this.#listeners]) listener();
    });
  }
}
