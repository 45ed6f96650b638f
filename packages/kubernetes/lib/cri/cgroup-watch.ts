// CgroupWatch: reports writes, additions and removals in some cgroup folders. The kernel reports
// what is done to the files, not what changes by itself (inotify(7)).
import { type FSWatcher, watch } from 'node:fs';

export class CgroupWatch {
  readonly #onChange: (path: string, name: string | null) => void;
  readonly #watchers = new Map<string, FSWatcher>();

  /** `onChange` is called with the folder and the name of the changed file. */
  constructor(onChange: (path: string, name: string | null) => void) {
    this.#onChange = onChange;
  }

  /** Watches exactly these folders from now on. One that cannot be watched is left out. */
  set(paths: Iterable<string>): void {
    const pathSet = new Set(paths);
    for (const [path, watcher] of this.#watchers) {
      if (pathSet.has(path)) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
    for (const path of pathSet) if (!this.#watchers.has(path)) this.#add(path);
  }

  close(): void {
    this.set([]);
  }

  #add(path: string): void {
    try {
      const watcher = watch(path, { persistent: false }, (_, name) => this.#onChange(path, name));
      // Other notices show its end.
      watcher.on('error', () => watcher.close());
      this.#watchers.set(path, watcher);
    } catch {
      // The folder is gone, or the kernel has no watch left: there are periodic looks as well.
    }
  }
}
