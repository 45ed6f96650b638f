// FolderWatch: reports changes in a folder that may come later, and go and come again. Follows
// inotify(7), through fs.watch.
import { existsSync, type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/** The identity of what lies at a path; undefined: nothing. A later file has another one. */
export function fileIdentity(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}:${found.birthtimeNs}`;
}

/** The path, or its nearest ancestor that is there. */
export function nearestPresent(path: string): string {
  return existsSync(path) ? path : nearestPresent(dirname(path));
}

export interface FolderWatchOptions {
  /** An absolute path. */
  readonly folder: string;
  /** A name in the folder has come, changed or gone; null: any may have. */
  readonly changed: (name: string | null) => void;
  /** The kernel has no watch left to give, say: nothing is reported from then on. */
  readonly failed: (error: Error) => void;
}

/** Where the folder is not there, its nearest ancestor is watched until it is. */
export class FolderWatch {
  readonly #options: FolderWatchOptions;
  #watcher: FSWatcher | undefined;
  // Of the folder that is watched.
  #path = '';
  #identity: string | undefined;

  constructor(options: FolderWatchOptions) {
    this.#options = options;
  }

  /** Reports nothing before it returns. @throws what fs.watch throws, a missing folder aside */
  start(): void {
    const { folder } = this.#options;
    // It may come or go before its watch is there.
    do {
      this.close();
      this.#follow(nearestPresent(folder));
    } while (nearestPresent(folder) !== this.#path || fileIdentity(this.#path) !== this.#identity);
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #follow(path: string): void {
    this.#path = path;
    this.#identity = fileIdentity(path);
    try {
      this.#watcher = watch(path, (_event, name) => this.#react(name));
      this.#watcher.on('error', this.#options.failed);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.#identity = undefined;
    }
  }

  #react(name: string | null): void {
    if (!this.#watcher) return;
    const { folder, changed, failed } = this.#options;
    try {
      const isSame = fileIdentity(this.#path) === this.#identity && nearestPresent(folder) === this.#path;
      if (isSame && this.#path !== folder) return;
      if (!isSame) this.start();
      changed(isSame ? name : null);
    } catch (error) {
      failed(error as Error);
    }
  }
}
