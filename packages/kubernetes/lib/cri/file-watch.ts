// FileWatch: tells that somebody has written one of some files; of cgroups too, where the kernel
// tells what is written, though not what changes by itself (inotify(7)).
import { type FSWatcher, watch } from 'node:fs';

export class FileWatch {
  readonly #onChange: () => void;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Watches these files from now on, and no others. One that cannot be watched is left out. */
  set(paths: Iterable<string>): void {
    const wanted = new Set(paths);
    for (const [path, watcher] of this.#watchers) {
      if (wanted.has(path)) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
    for (const path of wanted) if (!this.#watchers.has(path)) this.#add(path);
  }

  close(): void {
    this.set([]);
  }

  #add(path: string): void {
    try {
      const watcher = watch(path, { persistent: false }, () => this.#onChange());
      // Its end is told by others.
      watcher.on('error', () => watcher.close());
      this.#watchers.set(path, watcher);
    } catch {
      // It has gone, or the kernel has no watch left to give: there are rounds as well.
    }
  }
}
