// WaitQueue: the requests that wait for CPUs, first come first. A folder's queue is files in
// waiting/, each locked while its process lives.
import { join } from 'node:path';
import { unlessRefused } from '../base/errors.js';
import type { NativeFolder, NativeOwner } from '../base/native-files.js';
import { IN_ATTRIB, IN_CLOSE_WRITE, IN_DELETE_SELF, IN_MOVE_SELF, watchFile } from './files/folder-events.js';
import type { Listener } from './files/folder-watch.js';
import { lockHolder, lockNote } from './owners/lock-holder.js';
import { periodically } from './until.js';

/** A place in the queue. Lower numbers come first. */
export interface Ticket {
  readonly number: number;
}

/** A request that waits before another. Only its end can bring the other's turn. */
export interface Predecessor {
  isWaiting(): boolean;
  /** Calls `listener` when it may have stopped waiting. Returns a function that ends the watch. */
  watch(listener: Listener): () => void;
}

/** The queue of a state in memory, or the part of a folder's queue that this environment waits in. */
export class MemoryQueue {
  readonly #waiting = new Set<Ticket>();
  readonly #listeners = new Map<Ticket, Listener>();
  #last = 0;

  /** Takes the last place. REQUIRES: the state's lock. */
  join(number = this.#last + 1): Ticket {
    this.#last = number;
    const ticket = { number };
    this.#waiting.add(ticket);
    return ticket;
  }

  get #first(): Ticket | undefined {
    const [first] = this.#waiting;
    return first;
  }

  /** True if no living process has waited longer. Without a ticket: true if no process waits. */
  isFirst(ticket: Ticket | undefined): boolean {
    return this.#first === ticket;
  }

  /** A request that waits before this one, if any does. Requests that share one take turns. */
  // Calls only the ticket that becomes the first: the others need not wake.
  predecessorOf(ticket: Ticket): Predecessor | undefined {
    if (this.isFirst(ticket)) return undefined;
    const watch = (listener: Listener) => {
      this.#listeners.set(ticket, listener);
      return () => void this.#listeners.delete(ticket);
    };
    return { isWaiting: () => !this.isFirst(ticket), watch };
  }

  leave(ticket: Ticket): void {
    this.#waiting.delete(ticket);
    const first = this.#first;
    if (first) this.#listeners.get(first)?.();
  }
}

export type WaitQueue = Pick<MemoryQueue, keyof MemoryQueue>;

// Padded, so that names sort by number. Greater numbers, which no queue reaches, are not names of
// numalign.
const DIGITS = 16;
const NAME = /^0\d{15}$/;
const nameOf = ({ number }: Ticket) => String(number).padStart(DIGITS, '0');

const noteIn = (folder: NativeFolder, name: string) =>
  lockHolder(unlessRefused(() => folder.read(name))?.toString('utf8') ?? '');

// A request that ends removes its file; the kernel closes the file of a killed process.
const ENDED = IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF;

export class FolderQueue implements WaitQueue {
  // The tickets of this environment, and their files: garbage collection would release the locks.
  readonly #own = new MemoryQueue();
  readonly #files = new Map<Ticket, NativeOwner>();
  // The names at the last join, in order. Later ones come after each ticket of this environment.
  #names: string[] = [];

  /** `folder`: waiting/ of the state folder, at `path`. */
  constructor(
    private readonly folder: NativeFolder,
    private readonly path: string,
  ) {}

  join(): Ticket {
    this.#names = this.#list().sort();
    this.#removeEnded();
    let number = Number(this.#names.at(-1) ?? 0) + 1;
    // A folder may have the name, and is not removed.
    while (this.folder.version(nameOf({ number })) !== undefined) number++;
    const file = this.folder.createOwner(nameOf({ number }), lockNote());
    const ticket = this.#own.join(number);
    this.#files.set(ticket, file);
    return ticket;
  }

  // Other files in the folder are ignored.
  #list(): string[] {
    return this.folder.list().filter((name) => NAME.test(name));
  }

  // Only at both ends, because each file takes a look: those in between get there.
  #removeEnded(): void {
    for (const end of [0, -1])
      for (let name = this.#names.at(end); name !== undefined; name = this.#names.at(end)) {
        const place = name;
        if (this.#isAlive(place)) break;
        unlessRefused(() => this.folder.remove(place));
        this.#names.splice(end, 1);
      }
  }

  isFirst(ticket: Ticket | undefined): boolean {
    if (!this.#own.isFirst(ticket)) return false;
    return ticket ? this.#before(ticket) === undefined : !this.#list().some((name) => this.#isWaiting(name));
  }

  predecessorOf(ticket: Ticket): Predecessor | undefined {
    const own = this.#own.predecessorOf(ticket);
    if (own) return own;
    const name = this.#before(ticket);
    if (name === undefined) return undefined;
    return {
      isWaiting: () => this.#isWaiting(name),
      // Nothing reports that a process was stopped.
      watch: (listener) => periodically((ring) => this.#watch(name, ring), listener),
    };
  }

  // The last request of another process before the first one of this process. As long as it waits,
  // it does not matter which others do.
  #before(ticket: Ticket): string | undefined {
    const name = nameOf(ticket);
    const place = this.#names.findIndex((each) => each >= name);
    for (let i = (place < 0 ? this.#names.length : place) - 1; i >= 0; i--) {
      const other = this.#names[i]!;
      if (this.#isWaiting(other) && !this.#isOwn(other)) return other;
      if (!this.#isAlive(other)) this.#names.splice(i, 1);
    }
    return undefined;
  }

  // Where the folder was replaced, places in the new one may be before earlier tickets.
  #isOwn(name: string): boolean {
    return [...this.#files].some(([ticket, file]) => nameOf(ticket) === name && file.isCurrent(this.folder));
  }

  // Without a watch, the period remains.
  #watch(name: string, listener: Listener): () => void {
    return unlessRefused(() => watchFile(join(this.path, name), ENDED, listener)) ?? (() => {});
  }

  // A stopped process keeps its place but does not block others.
  #isWaiting(name: string): boolean {
    return this.#isAlive(name) && !noteIn(this.folder, name).isStopped;
  }

  // No request has what is not an ordinary file.
  #isAlive(name: string): boolean {
    return unlessRefused(() => this.folder.isOwnerAlive(name), false);
  }

  leave(ticket: Ticket): void {
    const file = this.#files.get(ticket);
    // If that is refused, the place counts as dead anyway; the next process that joins removes it. The
    // folder may have been replaced, and the name may be another request's.
    unlessRefused(() => file?.isCurrent(this.folder) && this.folder.remove(nameOf(ticket)));
    file?.close();
    this.#files.delete(ticket);
    this.#own.leave(ticket);
  }
}

/** A waiting process, for people. */
export interface Waiter {
  /** Its pid in its own pid namespace; null if unknown. */
  readonly pid: number | null;
  /** Its program without arguments. */
  readonly command: string;
}

/** The waiting processes of a folder, the next first. Needs no lock and changes nothing. */
export function waitersIn(folder: NativeFolder): Waiter[] {
  const names = folder.list().filter((name) => NAME.test(name));
  return names
    .sort()
    .filter((name) => unlessRefused(() => folder.isOwnerAlive(name), false))
    .map((name) => {
      const { holder, pid } = noteIn(folder, name);
      return { pid, command: pid === null ? holder : holder.slice(`${pid} `.length) };
    });
}
