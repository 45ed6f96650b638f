// CgroupWatch: tells that somebody has written, made or removed something in one of some folders of
// cgroups. The kernel tells what is done to them, not what changes by itself (inotify(7)).
import { type FSWatcher, watch } from 'node:fs';

export class CgroupWatch {
  readonly #onChange: (path: string, name: string | null) => void;
  readonly #watchers = new Map<string, FSWatcher>();

  /** `onChange` is given the folder, and the name of what is in it. */
  constructor(onChange: (path: string, name: string | null) => void) {
    this.#onChange = onChange;
  }

  /** Watches these folders from now on, and no others. One that cannot be watched is left out. */
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
      const watcher = watch(path, { persistent: false }, (_, name) => this.#onChange(path, name));
      // Other notices show its end.
      watcher.on('error', () => watcher.close());
      this.#watchers.set(path, watcher);
    } catch {
      // It has gone, or the kernel has no watch left to give: there are rounds as well.
    }
  }
}
