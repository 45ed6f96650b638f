// What the kernel says of folders: one inotify instance for all folders of this environment, as a
// user has few (128).
import { native } from '../../base/native.js';
import type { NativeInotify } from '../../base/native-files.js';
import { ENVIRONMENT } from '../../base/registry.js';

// inotify(7)
export const IN_CLOSE_WRITE = 0x8;
export const IN_MOVED = 0xc0;
export const IN_DELETE = 0x200;
export const IN_MOVE_SELF = 0x800;
export const IN_Q_OVERFLOW = 0x4000;
const IN_IGNORED = 0x8000;
const IN_MASK_ADD = 0x20000000;

/** `mask`: of one event, or IN_Q_OVERFLOW where events were lost. */
export type FolderListener = (mask: number, name: string) => void;

class FolderEvents {
  #inotify: NativeInotify | undefined;
  // One folder under two paths is one watch.
  readonly #listeners = new Map<number, Set<FolderListener>>();

  watch(path: string, mask: number, listener: FolderListener): () => void {
    this.#inotify ??= new native.Inotify((...event) => this.#tell(...event));
    try {
      const watch = this.#inotify.add(path, mask | IN_MASK_ADD);
      this.#listeners.set(watch, (this.#listeners.get(watch) ?? new Set()).add(listener));
      return () => this.#end(watch, listener);
    } catch (error) {
      this.#closeUnused();
      throw error;
    }
  }

  #end(watch: number, listener: FolderListener): void {
    const all = this.#listeners.get(watch);
    all?.delete(listener);
    if (all?.size === 0) {
      this.#listeners.delete(watch);
      this.#inotify?.remove(watch);
    }
    this.#closeUnused();
  }

  // In the next turn: managers that are opened and closed in one turn share an instance, and the
  // kernel may take milliseconds to close it.
  #closeUnused(): void {
    if (this.#listeners.size > 0) return;
    setImmediate(() => {
      if (this.#listeners.size > 0) return;
      this.#inotify?.close();
      this.#inotify = undefined;
    }).unref();
  }

  #tell(watch: number, mask: number, name: string): void {
    // The folder was removed.
    if (mask & IN_IGNORED) this.#listeners.delete(watch);
    const all =
      mask & IN_Q_OVERFLOW
        ? [...this.#listeners.values()].flatMap((some) => [...some])
        : this.#listeners.get(watch);
    for (const listener of [...(all ?? [])]) listener(mask, name);
  }
}

const folderEvents = () => new FolderEvents();

/**
 * Calls the listener with what happens in a folder, and never keeps the process alive. Answers how
 * to end it.
 * @throws ERR_SYSCALL where the kernel has no instance or no watch left, or there is no such folder
 */
export function watchFolder(path: string, mask: number, listener: FolderListener): () => void {
  return ENVIRONMENT.of(folderEvents).watch(path, mask, listener);
}
