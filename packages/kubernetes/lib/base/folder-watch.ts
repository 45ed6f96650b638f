// FolderWatch: reports changes in a folder that may appear later, disappear and reappear. Uses
// fs.watch, see inotify(7).
import { existsSync, type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/**
 * The identity of the file at a path; undefined if there is none. A later file has another
 * identity.
 */
export function fileIdentity(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}:${found.birthtimeNs}`;
}

/** The path, or its nearest existing ancestor. */
export function nearestPresent(path: string): string {
  return existsSync(path) ? path : nearestPresent(dirname(path));
}

export interface FolderWatchOptions {
  /** An absolute path. */
  readonly folder: string;
  /** A name in the folder was added, changed or removed; null: any may have been. */
  readonly changed: (name: string | null) => void;
  /** The watch failed, for example because the kernel has none left: nothing more is reported. */
  readonly failed: (error: Error) => void;
}

/** If the folder does not exist, watches its nearest ancestor until it does. */
export class FolderWatch {
  readonly #options: FolderWatchOptions;
  #watcher: FSWatcher | undefined;
  // The folder being watched.
  #path = '';
  #identity: string | undefined;

  constructor(options: FolderWatchOptions) {
    this.#options = options;
  }

  /**
   * Reports nothing before it returns. @throws what fs.watch throws, except for a missing folder
   */
  start(): void {
    const { folder } = this.#options;
    // The folder may appear or disappear before its watch exists.
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
