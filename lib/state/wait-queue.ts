// WaitQueue: the processes that wait for CPUs, first come first. A folder's queue is files in
// waiting/, each locked while its process lives.
import { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeOwner } from '../base/native-files.js';
import { lockHolder, lockNote } from './owners/lock-holder.js';

/** A place in the queue. Lower numbers come first. */
export interface Ticket {
  readonly number: number;
}

export interface WaitQueue {
  /** Takes the last place. REQUIRES: the state's lock. */
  join(): Ticket;
  /** True if no living process has waited longer. Without a ticket: true if no process waits. */
  isFirst(ticket: Ticket | undefined): boolean;
  leave(ticket: Ticket): void;
}

// Padded, so that names sort by number.
const DIGITS = 16;
const NAME = /^\d{16}$/;
const nameOf = ({ number }: Ticket) => String(number).padStart(DIGITS, '0');

export class FolderQueue implements WaitQueue {
  readonly #folder: NativeFolder;
  // Keeps references: garbage collection would release the locks.
  readonly #ownFiles = new Map<string, NativeOwner>();

  /** `folder`: waiting/ of the state folder. */
  constructor(folder: NativeFolder) {
    this.#folder = folder;
  }

  join(): Ticket {
    const names = this.#names().sort();
    for (const name of names) if (!this.#isAlive(name)) this.#folder.remove(name);
    const ticket = { number: Number(names.at(-1) ?? 0) + 1 };
    this.#ownFiles.set(nameOf(ticket), this.#folder.createOwner(nameOf(ticket), lockNote()));
    return ticket;
  }

  isFirst(ticket: Ticket | undefined): boolean {
    const place = ticket && nameOf(ticket);
    return !this.#names().some((name) => (place === undefined || name < place) && this.#isWaiting(name));
  }

  // Other files in the folder are ignored.
  #names(): string[] {
    return this.#folder.list().filter((name) => NAME.test(name));
  }

  // A stopped process keeps its place but does not block others.
  #isWaiting(name: string): boolean {
    if (!this.#isAlive(name)) return false;
    return this.#ownFiles.has(name) || !lockHolder(this.#folder.read(name)?.toString('utf8') ?? '').isStopped;
  }

  #isAlive(name: string): boolean {
    return this.#ownFiles.has(name) || this.#folder.isOwnerAlive(name);
  }

  leave(ticket: Ticket): void {
    const name = nameOf(ticket);
    try {
      this.#folder.remove(name);
    } catch (error) {
      // The place counts as dead anyway; the next process that joins removes it.
      if (!(error instanceof NumalignError)) throw error;
    } finally {
      this.#ownFiles.get(name)?.close();
      this.#ownFiles.delete(name);
    }
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
    .filter((name) => folder.isOwnerAlive(name))
    .map((name) => {
      const { holder, pid } = lockHolder(folder.read(name)?.toString('utf8') ?? '');
      return { pid, command: pid === null ? holder : holder.slice(`${pid} `.length) };
    });
}

/** The queue of a state in memory. */
export class MemoryQueue implements WaitQueue {
  #last = 0;
  readonly #waiting = new Set<number>();
  readonly #onLeave: () => void;

  /** `onLeave`: called when a waiter leaves, so that the next can try. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  join(): Ticket {
    this.#last++;
    this.#waiting.add(this.#last);
    return { number: this.#last };
  }

  isFirst(ticket: Ticket | undefined): boolean {
    const [first] = this.#waiting;
    return first === undefined || first === ticket?.number;
  }

  leave({ number }: Ticket): void {
    this.#waiting.delete(number);
    this.#onLeave();
  }
}
