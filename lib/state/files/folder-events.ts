// What the kernel says of folders: one inotify instance for all folders of this environment, as a
// user has few (128).
import { native } from '../../base/native.js';
import type { NativeInotify } from '../../base/native-files.js';

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

let inotify: NativeInotify | undefined;
// One folder under two paths is one watch.
const listeners = new Map<number, Set<FolderListener>>();

/**
 * Calls the listener with what happens in a folder, and never keeps the process alive. Answers how
 * to end it.
 * @throws ERR_SYSCALL where the kernel has no instance or no watch left, or there is no such folder
 */
export function watchFolder(path: string, mask: number, listener: FolderListener): () => void {
  inotify ??= new native.Inotify(tell);
  try {
    const watch = inotify.add(path, mask | IN_MASK_ADD);
    listeners.set(watch, (listeners.get(watch) ?? new Set()).add(listener));
    return () => end(watch, listener);
  } catch (error) {
    closeUnused();
    throw error;
  }
}

function end(watch: number, listener: FolderListener): void {
  const all = listeners.get(watch);
  all?.delete(listener);
  if (all?.size === 0) {
    listeners.delete(watch);
    inotify?.remove(watch);
  }
  closeUnused();
}

// In the next turn: managers that are opened and closed in one turn share an instance, and the
// kernel may take milliseconds to close it.
function closeUnused(): void {
  if (listeners.size > 0) return;
  setImmediate(() => {
    if (listeners.size > 0) return;
    inotify?.close();
    inotify = undefined;
  }).unref();
}

function tell(watch: number, mask: number, name: string): void {
  // The folder was removed.
  if (mask & IN_IGNORED) listeners.delete(watch);
  const all =
    mask & IN_Q_OVERFLOW ? [...listeners.values()].flatMap((some) => [...some]) : listeners.get(watch);
  for (const listener of [...(all ?? [])]) listener(mask, name);
}
