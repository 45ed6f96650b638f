// OwnerNames: whether the files in owners/ are those that numalign put there. A note in the state
// folder says so. It saves a look at /proc/locks, for which the kernel stops all locking of files on
// the machine, and first waits for all CPUs: often longer than all else that a first grant takes.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { unlessRefused } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';

const NOTE_FILE = 'owners.note';
// Longer than a tick of the kernel's clock for files.
const TICK_MS = 20;

/** Does what gives a file in owners/ this name, or takes it away. */
export type ChangeName = <T>(name: string, change: () => T) => T;

interface Time {
  readonly text: string;
  /** True if another change of a name from now on gives another time. */
  readonly isPast: boolean;
}

const noteOf = ({ text }: Time, sum: number) => `${text} ${sum >>> 0}\n`;

/**
 * The kernel sets a folder's change time whenever a name in it changes, and no program can set it
 * back. That time is only as fine as a tick, so the inodes count too: a file system in memory gives
 * none twice.
 */
export class OwnerNames {
  readonly #owners: NativeFolder;
  readonly #state: NativeFolder;
  readonly #path: string;
  // The folder's time, and the sum of its files, when the names last were as noted.
  #time: Time | undefined;
  #sum = 0;

  /** `owners`: owners/ in the folder `state` at `path`. */
  constructor(owners: NativeFolder, state: NativeFolder, path: string) {
    this.#owners = owners;
    this.#state = state;
    this.#path = join(path, 'owners');
  }

  // Undefined on other file systems, and if the folder is gone.
  #timeNow(): Time | undefined {
    return unlessRefused(() => {
      if (!this.#owners.isInMemory()) return undefined;
      const now = Date.now();
      const found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
      return (
        found && { text: `${found.ino} ${found.ctimeNs}`, isPast: now - Number(found.ctimeMs) > TICK_MS }
      );
    });
  }

  // A number for the file with this name; 0 without one.
  #numberOf(name: string): number {
    const version = this.#owners.version(name);
    return version === undefined ? 0 : crc32(`${name} ${version.slice(0, version.indexOf(':'))}`);
  }

  // The same in any order.
  #sumNow(): number {
    return this.#owners.list().reduce((sum, name) => sum ^ this.#numberOf(name), 0);
  }

  /** True if no other program has added, removed or replaced a file. Needs no lock. */
  areKept(): boolean {
    const time = this.#timeNow();
    if (time === undefined) return false;
    if (this.#time?.isPast && this.#time.text === time.text) return true;
    const isAsNoted = () => {
      const note = this.#state.read(NOTE_FILE)?.toString('latin1');
      if (!note?.startsWith(`${time.text} `)) return false;
      this.#sum = this.#sumNow();
      return note === noteOf(time, this.#sum);
    };
    this.#time = unlessRefused(isAsNoted, false) ? time : undefined;
    return this.#time !== undefined;
  }

  /** Changes a name. If the names were kept, they are. */
  readonly change: ChangeName = (name, change) => {
    if (!this.areKept()) return change();
    const sum = this.#sum;
    const before = unlessRefused(() => this.#numberOf(name));
    try {
      return change();
    } finally {
      const after = unlessRefused(() => this.#numberOf(name));
      if (before !== undefined && after !== undefined && after !== before) this.#note(sum ^ before ^ after);
    }
  };

  /**
   * Calls `look`. If it is complete, each living owner has its file under its name, and the names
   * are kept unless they have changed meanwhile.
   */
  keepAfter<T extends { readonly isComplete: boolean }>(look: () => T): T {
    const sumNow = () => unlessRefused(() => this.#sumNow());
    const before = sumNow();
    const found = look();
    if (found.isComplete && before !== undefined && sumNow() === before) this.#note(before);
    return found;
  }

  // Without a note, others look at /proc/locks.
  #note(sum: number): void {
    const time = this.#timeNow();
    if (!time) return;
    unlessRefused(() => this.#state.replace(NOTE_FILE, noteOf(time, sum)));
  }
}
