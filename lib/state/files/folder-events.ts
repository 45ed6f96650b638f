// What the kernel says of folders and files: one inotify instance for all of this environment, as a
// user has few (128).
import { native } from '../../base/native.js';
import type { NativeInotify } from '../../base/native-files.js';
import { noticeDelayMs } from '../../base/notices/notice-delay.js';
import { ENVIRONMENT } from '../../base/registry.js';

// inotify(7)
export const IN_MODIFY = 0x2;
export const IN_ATTRIB = 0x4;
export const IN_CLOSE_WRITE = 0x8;
export const IN_MOVED_FROM = 0x40;
export const IN_MOVED_TO = 0x80;
export const IN_MOVED = IN_MOVED_FROM | IN_MOVED_TO;
export const IN_CREATE = 0x100;
export const IN_DELETE = 0x200;
export const IN_DELETE_SELF = 0x400;
export const IN_MOVE_SELF = 0x800;
export const IN_Q_OVERFLOW = 0x4000;
export const IN_IGNORED = 0x8000;
const IN_ONLYDIR = 0x1000000;
const IN_DONT_FOLLOW = 0x2000000;
const IN_MASK_ADD = 0x20000000;

// Said to everybody, asked for or not.
const UNASKED = IN_Q_OVERFLOW | IN_IGNORED;

/**
 * `mask`: of one event; IN_Q_OVERFLOW where events were lost, IN_IGNORED where the watch has ended
 * with what was watched.
 */
export type FolderListener = (mask: number, name: string) => void;

interface Listening {
  readonly path: string;
  readonly mask: number;
  readonly listener: FolderListener;
}

/** A watch that begins when the delay is over. */
interface DelayedWatch {
  begin(): () => void;
  readonly listener: FolderListener;
  /** Once it has begun. */
  end?: () => void;
}

const masksOf = (all: Iterable<Listening>) => [...all].reduce((mask, each) => mask | each.mask, 0);

class FolderEvents {
  #inotify: NativeInotify | undefined;
  // One folder under two paths is one watch.
  readonly #listeners = new Map<number, Set<Listening>>();
  readonly #delayed = new Set<DelayedWatch>();
  #delay: 'before' | 'during' | 'over' = 'before';

  /** Within the delay nothing is refused: what cannot be watched then is told to have ended. */
  watch(path: string, mask: number, how: number, listener: FolderListener): () => void {
    const begin = () => this.#begin(path, mask, how, listener);
    if (!this.#isDelayed()) return begin();
    const delayed: DelayedWatch = { begin, listener };
    this.#delayed.add(delayed);
    return () => {
      if (!this.#delayed.delete(delayed)) delayed.end?.();
    };
  }

  // From the first watch on.
  #isDelayed(): boolean {
    if (this.#delay === 'before') {
      const ms = noticeDelayMs();
      this.#delay = ms > 0 ? 'during' : 'over';
      if (ms > 0) setTimeout(() => this.#endDelay(), ms).unref();
    }
    return this.#delay === 'during';
  }

  // What has happened meanwhile nobody has told: as where events were lost.
  #endDelay(): void {
    this.#delay = 'over';
    for (const delayed of this.#delayed) {
      this.#delayed.delete(delayed);
      let mask = IN_Q_OVERFLOW;
      try {
        delayed.end = delayed.begin();
      } catch {
        mask = IN_IGNORED;
      }
      delayed.listener(mask, '');
    }
  }

  #begin(path: string, mask: number, how: number, listener: FolderListener): () => void {
    this.#inotify ??= new native.Inotify((...event) => this.#tell(...event));
    try {
      const watch = this.#inotify.add(path, mask | how | IN_MASK_ADD);
      const listening = { path, mask, listener };
      this.#listeners.set(watch, (this.#listeners.get(watch) ?? new Set()).add(listening));
      return () => this.#end(watch, listening);
    } catch (error) {
      this.#closeUnused();
      throw error;
    }
  }

  get hasPending(): boolean {
    return this.#delayed.size > 0 || (this.#inotify?.hasPending() ?? false);
  }

  #end(watch: number, listening: Listening): void {
    const all = this.#listeners.get(watch);
    if (!all?.delete(listening)) return;
    if (all.size > 0) this.#narrow(watch, listening, masksOf(all));
    else {
      this.#listeners.delete(watch);
      this.#inotify?.remove(watch);
    }
    this.#closeUnused();
  }

  // The process does not wake for what nobody asks for any more.
  #narrow(watch: number, { path, mask }: Listening, left: number): void {
    if ((mask & ~left) === 0) return;
    try {
      const now = this.#inotify!.add(path, left | IN_DONT_FOLLOW);
      if (now === watch) return;
      // The path leads to something else by now, whose mask this was not meant for.
      const others = this.#listeners.get(now);
      if (!others) this.#inotify!.remove(now);
      else {
        this.#inotify!.add(path, masksOf(others) | IN_DONT_FOLLOW | IN_MASK_ADD);
        this.#tell(now, IN_Q_OVERFLOW, '');
      }
    } catch {
      // It leads to nothing: more is said than is asked for, and that is dropped.
    }
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
    const all =
      mask & IN_Q_OVERFLOW
        ? [...this.#listeners.values()].flatMap((some) => [...some])
        : [...(this.#listeners.get(watch) ?? [])];
    // What was watched is gone.
    if (mask & IN_IGNORED) this.#listeners.delete(watch);
    for (const each of all) if (mask & (each.mask | UNASKED)) each.listener(mask, name);
  }
}

const folderEvents = () => new FolderEvents();

/**
 * Calls the listener with what happens in a folder, and never keeps the process alive. Answers how
 * to end it.
 * @throws ERR_SYSCALL where the kernel has no instance or no watch left, or there is no such folder
 */
export function watchFolder(path: string, mask: number, listener: FolderListener): () => void {
  return ENVIRONMENT.of(folderEvents).watch(path, mask, IN_ONLYDIR | IN_DONT_FOLLOW, listener);
}

/**
 * Whether a listener is still to be called for something that has happened. The kernel queues the
 * event of a file that is closed before it lets the file's locks go.
 */
export const hasPendingEvents = (): boolean => ENVIRONMENT.of(folderEvents).hasPending;

/** As {@link watchFolder}, of one file. */
export function watchFile(path: string, mask: number, listener: FolderListener): () => void {
  return ENVIRONMENT.of(folderEvents).watch(path, mask, IN_DONT_FOLLOW, listener);
}
