// OwnerWatch: what the kernel says of the owners' files of a state folder. A process that ends closes its own; one that
// is removed or replaced was so by somebody else.
import { join } from 'node:path';
import { type NativeInotify, native } from '../native.js';

// inotify(7)
const IN_CLOSE_WRITE = 0x8;
const IN_MOVED = 0xc0;
const IN_DELETE = 0x200;
const IN_MOVE_SELF = 0x800;
const IN_Q_OVERFLOW = 0x4000;

export interface OwnerEvents {
  /** A file was closed that was open for writing. */
  closed(name: string): void;
  /** A file was removed or replaced; `undefined`: any may have been. */
  disturbed(name: string | undefined): void;
}

/** Never keeps the process alive. It wakes for the owners' files only, and not for commits. */
export class OwnerWatch {
  readonly #path: string;
  readonly #events: OwnerEvents;
  #inotify: NativeInotify | undefined;
  #isWanted = false;

  /** `path`: of the state folder. */
  constructor(path: string, events: OwnerEvents) {
    this.#path = path;
    this.#events = events;
  }

  /** Does nothing where the kernel has no watch left to give (inotify's limits): then the next transaction sees what has happened. */
  start(): void {
    this.#isWanted = true;
    if (this.#inotify) return;
    try {
      const inotify = new native.Inotify((_, mask, name) => this.#tell(mask, name));
      this.#inotify = inotify;
      inotify.add(join(this.#path, 'owners'), IN_CLOSE_WRITE | IN_DELETE | IN_MOVED | IN_MOVE_SELF);
      inotify.add(this.#path, IN_MOVE_SELF);
    } catch {
      this.#end();
    }
  }

  get isActive(): boolean {
    return this.#inotify !== undefined;
  }

  stop(): void {
    this.#isWanted = false;
    this.#end();
  }

  #end(): void {
    this.#inotify?.close();
    this.#inotify = undefined;
  }

  /** Another folder is at the path. */
  restart(): void {
    this.#end();
    if (this.#isWanted) this.start();
  }

  #tell(mask: number, name: string): void {
    if (mask & (IN_Q_OVERFLOW | IN_MOVE_SELF)) this.#events.disturbed(undefined);
    else if (mask & IN_CLOSE_WRITE) this.#events.closed(name);
    else this.#events.disturbed(name);
  }
}
