// Kernel events of folders and files. The environment shares one inotify instance, because a user
// has few (128).

import { ENVIRONMENT } from '../../base/collections/registry.js';
import { native } from '../../base/native.js';
import type { NativeInotify } from '../../base/native-files.js';
import { noticeDelayMs } from '../../base/notices/notice-delay.js';

// inotify(7)
export const IN_MODIFY = 0x2;
export const IN_ATTRIB = 0x4;
export const IN_CLOSE_WRITE = 0x8;
export const IN_MOVED_FROM = 0x40;
export const IN_MOVED_TO = 0x80;
export const IN_CREATE = 0x100;
export const IN_DELETE = 0x200;
export const IN_DELETE_SELF = 0x400;
export const IN_MOVE_SELF = 0x800;
export const IN_Q_OVERFLOW = 0x4000;
export const IN_IGNORED = 0x8000;
const IN_ONLYDIR = 0x1000000;
const IN_DONT_FOLLOW = 0x2000000;
const IN_MASK_ADD = 0x20000000;

// The kernel reports these to every watch.
const ALWAYS_REPORTED = IN_Q_OVERFLOW | IN_IGNORED;

/**
 * Gets the mask of one event. IN_Q_OVERFLOW means that events were lost. IN_IGNORED means that the
 * watch has ended because its folder or file was removed.
 */
export type FolderListener = (mask: number, name: string) => void;

interface Subscription {
  readonly path: string;
  readonly mask: number;
  readonly listener: FolderListener;
}

/** A watch that begins when the delay is over. */
interface DelayedWatch {
  begin(): () => void;
  readonly listener: FolderListener;
  /** Set once the watch has begun. */
  end?: () => void;
}

const masksOf = (all: Iterable<Subscription>) => [...all].reduce((mask, each) => mask | each.mask, 0);

class FolderEvents {
  #inotify: NativeInotify | undefined;
  // A folder under two paths has one kernel watch.
  readonly #listeners = new Map<number, Set<Subscription>>();
  readonly #delayedWatches = new Set<DelayedWatch>();
  #delay: 'before' | 'during' | 'over' = 'before';

  /** Refuses nothing during the delay. A watch that fails after it reports IN_IGNORED. */
  watch(path: string, mask: number, how: number, listener: FolderListener): () => void {
    const begin = () => this.#begin(path, mask, how, listener);
    if (!this.#isDelayed()) return begin();
    const watch: DelayedWatch = { begin, listener };
    this.#delayedWatches.add(watch);
    return () => {
      if (!this.#delayedWatches.delete(watch)) watch.end?.();
    };
  }

  // The delay starts with the first watch.
  #isDelayed(): boolean {
    if (this.#delay === 'before') {
      const ms = noticeDelayMs();
      this.#delay = ms > 0 ? 'during' : 'over';
      if (ms > 0) setTimeout(() => this.#endDelay(), ms).unref();
    }
    return this.#delay === 'during';
  }

  // Events during the delay went unreported, so the listeners get IN_Q_OVERFLOW.
  #endDelay(): void {
    this.#delay = 'over';
    for (const watch of this.#delayedWatches) {
      this.#delayedWatches.delete(watch);
      let mask = IN_Q_OVERFLOW;
      try {
        watch.end = watch.begin();
      } catch {
        mask = IN_IGNORED;
      }
      watch.listener(mask, '');
    }
  }

  #begin(path: string, mask: number, how: number, listener: FolderListener): () => void {
    this.#inotify ??= new native.Inotify((...event) => this.#tell(...event));
    try {
      const watch = this.#inotify.add(path, mask | how | IN_MASK_ADD);
      const subscription = { path, mask, listener };
      this.#listeners.set(watch, (this.#listeners.get(watch) ?? new Set()).add(subscription));
      return () => this.#end(watch, subscription);
    } catch (error) {
      this.#closeUnused();
      throw error;
    }
  }

  get hasPending(): boolean {
    return this.#delayedWatches.size > 0 || (this.#inotify?.hasPending() ?? false);
  }

  #end(watch: number, subscription: Subscription): void {
    const all = this.#listeners.get(watch);
    if (!all?.delete(subscription)) return;
    if (all.size > 0) this.#narrow(watch, subscription, masksOf(all));
    else {
      this.#listeners.delete(watch);
      this.#inotify?.remove(watch);
    }
    this.#closeUnused();
  }

  // Drops events that no listener wants any more, so that they do not wake the process.
  #narrow(watch: number, { path, mask }: Subscription, events: number): void {
    if ((mask & ~events) === 0) return;
    try {
      const now = this.#inotify!.add(path, events | IN_DONT_FOLLOW);
      if (now === watch) return;
      // The path leads to another file now, which keeps the mask of its own listeners.
      const others = this.#listeners.get(now);
      if (!others) this.#inotify!.remove(now);
      else {
        this.#inotify!.add(path, masksOf(others) | IN_DONT_FOLLOW | IN_MASK_ADD);
        this.#tell(now, IN_Q_OVERFLOW, '');
      }
    } catch {
      // The path leads nowhere. #tell drops the events that no listener wants.
    }
  }

  // Waits for the next turn: managers opened and closed in one turn share an instance, and closing
  // it can take the kernel milliseconds.
  #closeUnused(): void {
    if (this.#listeners.size > 0) return;
    setImmediate(() => {
      if (this.#listeners.size > 0) return;
      this.#inotify?.close();
      this.#inotify = undefined;
    }).unref();
  }

  #tell(watch: number, mask: number, name: string): void {
    const all =
      mask & IN_Q_OVERFLOW
        ? [...this.#listeners.values()].flatMap((some) => [...some])
        : [...(this.#listeners.get(watch) ?? [])];
    // The kernel has ended the watch.
    if (mask & IN_IGNORED) this.#listeners.delete(watch);
    for (const each of all) if (mask & (each.mask | ALWAYS_REPORTED)) each.listener(mask, name);
  }
}

const folderEvents = () => new FolderEvents();

/**
 * Calls the listener for events of a folder. Never keeps the process alive. Returns a function that
 * ends the watch.
 * @throws ERR_SYSCALL if the kernel has no instance or watch left, or the folder does not exist
 */
export function watchFolder(path: string, mask: number, listener: FolderListener): () => void {
  return ENVIRONMENT.of(folderEvents).watch(path, mask, IN_ONLYDIR | IN_DONT_FOLLOW, listener);
}

/**
 * True if events wait for a listener. The kernel queues the close event of a file before it
 * releases the locks of that file.
 */
export const hasPendingEvents = (): boolean => ENVIRONMENT.of(folderEvents).hasPending;

/** Like {@link watchFolder}, for one file. */
export function watchFile(path: string, mask: number, listener: FolderListener): () => void {
  return ENVIRONMENT.of(folderEvents).watch(path, mask, IN_DONT_FOLLOW, listener);
}
