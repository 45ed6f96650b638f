// OwnerWatch: kernel events of the owners' files in a state folder. A process closes its file when
// it ends. Only another process removes or replaces it.
import { join } from 'node:path';
import {
  hasPendingEvents,
  IN_CLOSE_WRITE,
  IN_DELETE,
  IN_IGNORED,
  IN_MOVE_SELF,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  IN_Q_OVERFLOW,
  watchFolder,
} from '../files/folder-events.js';

const OWNERS_MASK = IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF;

// Used if inotify has reached its limits.
const PERIOD_WITHOUT_INOTIFY_MS = 500;

/** A time during which the kernel reports every event of the files. */
export interface NoticeEra {
  /** Seconds of process.uptime(). */
  readonly begin: number;
}

const beginEra = (): NoticeEra => ({ begin: process.uptime() });

export interface OwnerEvents {
  /** A file was closed that was open for writing. */
  closed(name: string): void;
  /** A file was removed, or moved to a folder that is not watched; undefined: perhaps any file. */
  disturbed(name: string | undefined): void;
  /** A file got this name. */
  placed(name: string): void;
  /** Events may have been lost. */
  missed(): void;
}

/** Never keeps the process alive. Wakes it for the owners' files only, not for commits. */
export class OwnerWatch {
  #ends: (() => void)[] = [];
  #era: NoticeEra | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `path`: the state folder. */
  constructor(
    private readonly path: string,
    private readonly events: OwnerEvents,
  ) {}

  /** If inotify refuses, tries again twice a second. */
  start(): void {
    if (this.isActive) return;
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = undefined;
    const tell = (mask: number, name: string) => this.#tell(mask, name);
    try {
      this.#ends.push(watchFolder(join(this.path, 'owners'), OWNERS_MASK, tell));
      this.#ends.push(watchFolder(this.path, IN_MOVE_SELF, tell));
      this.#era = beginEra();
    } catch {
      this.stop();
      this.#timer = setInterval(() => this.#lookAgain(), PERIOD_WITHOUT_INOTIFY_MS).unref();
    }
  }

  /**
   * The same object while the kernel reports every event. Undefined if an event is pending, or
   * events go unreported.
   */
  get era(): NoticeEra | undefined {
    return this.#era && !hasPendingEvents() ? this.#era : undefined;
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

  /** The path has another folder now. */
  restart(): void {
    if (!this.isActive && this.#timer === undefined) return;
    this.stop();
    this.start();
  }

  #lookAgain(): void {
    this.start();
    this.events.missed();
  }

  #tell(mask: number, name: string): void {
    // The watch does not cover what is at the path now.
    if (mask & (IN_IGNORED | IN_MOVE_SELF)) this.#era = undefined;
    if (mask & IN_Q_OVERFLOW) {
      this.#era &&= beginEra();
      this.events.missed();
    } else if (mask & IN_MOVE_SELF) this.events.disturbed(undefined);
    else if (mask & IN_CLOSE_WRITE) this.events.closed(name);
    else if (mask & IN_MOVED_TO) this.events.placed(name);
    else if (mask & (IN_MOVED_FROM | IN_DELETE)) this.events.disturbed(name);
  }
}
