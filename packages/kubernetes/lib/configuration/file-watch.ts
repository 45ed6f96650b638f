// FileWatch: reports changes of files that editors, tools and kubelets replace. A kubelet replaces
// the link `..data` in the folder of a ConfigMap, by which all of its files change at once.
import { basename, dirname } from 'node:path';
import { FolderWatch } from '../base/folder-watch.js';

export interface FileWatchOptions {
  readonly changed: () => void;
  /** The watch failed: only {@link FileWatch.follow} starts it again. */
  readonly failed: (error: Error) => void;
}

// An editor empties a file, and writes it then.
const SETTLED_MS = 100;
const DATA = '..data';

export class FileWatch {
  readonly #options: FileWatchOptions;
  #watches: FolderWatch[] = [];
  #folders = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FileWatchOptions) {
    this.#options = options;
  }

  /** Reports changes of these files from now on, and of no others. */
  follow(files: readonly string[]): void {
    const folders = JSON.stringify(files);
    if (folders === this.#folders) return;
    this.close();
    this.#folders = folders;
    try {
      for (const file of files) this.#watch(file);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
    this.#folders = '';
  }

  #watch(file: string): void {
    const names: ReadonlySet<string | null> = new Set([basename(file), DATA, null]);
    const watch = new FolderWatch({
      folder: dirname(file),
      changed: (name) => names.has(name) && this.#settle(),
      failed: (error) => this.#fail(error),
    });
    this.#watches.push(watch);
    watch.start();
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#options.changed, SETTLED_MS);
  }

  #fail(error: Error): void {
    this.close();
    this.#options.failed(error);
  }
}
