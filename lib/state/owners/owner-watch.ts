// OwnerWatch: what the kernel says of the owners' files of a state folder. A process that ends
// closes its own; one that is removed or replaced was so by somebody else.
import { join } from 'node:path';
import {
  IN_CLOSE_WRITE,
  IN_DELETE,
  IN_IGNORED,
  IN_MOVE_SELF,
  IN_MOVED,
  IN_Q_OVERFLOW,
  isAllTold,
  watchFolder,
} from '../files/folder-events.js';

// Where the kernel has no watch left to give (inotify's limits).
const PERIOD_WITHOUT_INOTIFY_MS = 500;

export interface OwnerEvents {
  /** A file was closed that was open for writing. */
  closed(name: string): void;
  /** A file was removed or replaced; `undefined`: any may have been. */
  disturbed(name: string | undefined): void;
  /** Some of this may have happened without the kernel's saying so. */
  missed(): void;
}

/** Never keeps the process alive. It wakes for the owners' files only, and not for commits. */
export class OwnerWatch {
  readonly #path: string;
  readonly #events: OwnerEvents;
  #ends: (() => void)[] = [];
  #era: object | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `path`: of the state folder. */
  constructor(path: string, events: OwnerEvents) {
    this.#path = path;
    this.#events = events;
  }

  /** Where the kernel does not watch, it is asked again twice a second. */
  start(): void {
    if (this.isActive) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    const tell = (mask: number, name: string) => this.#tell(mask, name);
    try {
      this.#ends.push(
        watchFolder(join(this.#path, 'owners'), IN_CLOSE_WRITE | IN_DELETE | IN_MOVED | IN_MOVE_SELF, tell),
      );
      this.#ends.push(watchFolder(this.#path, IN_MOVE_SELF, tell));
      this.#era = {};
    } catch {
      this.stop();
      this.#timer = setInterval(() => this.#lookAgain(), PERIOD_WITHOUT_INOTIFY_MS).unref();
    }
  }

  /**
   * The same object as long as everything that happens to the files is told; undefined where
   * something may not have been told yet, or never is.
   */
  get era(): object | undefined {
    return this.#era && isAllTold() ? this.#era : undefined;
  }

  get isActive(): boolean {
    return this.#ends.length > 0;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#era = undefined;
  }

  /** Another folder is at the path. */
  restart(): void {
    if (!this.isActive && this.#timer === undefined) return;
    this.stop();
    this.start();
  }

  #lookAgain(): void {
    this.start();
    this.#events.missed();
  }

  #tell(mask: number, name: string): void {
    // The folder is gone, and its watch with it.
    if (mask & IN_IGNORED) this.#era = undefined;
    if (mask & IN_Q_OVERFLOW) {
      this.#era &&= {};
      this.#events.missed();
    } else if (mask & IN_MOVE_SELF) this.#events.disturbed(undefined);
    else if (mask & IN_CLOSE_WRITE) this.#events.closed(name);
    else this.#events.disturbed(name);
  }
}
