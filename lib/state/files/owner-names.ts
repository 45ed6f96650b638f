// OwnerNames: whether the files in owners/ are those that numalign put there. A note says so. It
// saves a look at /proc/locks, for which the kernel stops all locking of files on the machine, and
// first waits for all CPUs: often longer than all else that a first grant takes.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { unlessRefused } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';

const NOTE_FILE = 'owners.note';
// Longer than a tick of the kernel's clock for files, even if the CPU that keeps it is held up.
const TICK_MS = 100;
// Before a test sets another one.
const { now } = Date;

/**
 * Does what gives files in owners/ these names, or takes them away. `isDone`: false if another
 * program has come between.
 */
export type ChangeNames = <T>(
  names: readonly string[],
  change: () => T,
  isDone?: (result: T) => boolean,
) => T;

/** Does it, and notes nothing. */
export const changeAlone: ChangeNames = (_, change) => change();

interface Time {
  readonly text: string;
  /** The part of the state folder. */
  readonly folder: bigint;
  /** True if another change of a name from now on gives another time. */
  readonly isPast: boolean;
}

const noteOf = ({ text }: Time, sum: number) => `${text} ${sum}\n`;

/**
 * The kernel sets a folder's change time whenever a name in it changes or it is renamed, and no
 * program can set it back. That time is only as fine as a tick, so the inodes count too: a file
 * system in memory gives none twice. The state folder's time counts because another folder may have
 * had its name meanwhile, with owners of its own.
 */
export class OwnerNames {
  // The time at which the names are certainly as noted.
  #certain: string | undefined;

  /**
   * `owners`: owners/ in the state folder at `path`. `notes`: a folder for the note, which must not
   * change the state folder's time.
   */
  constructor(
    private readonly owners: NativeFolder,
    private readonly notes: NativeFolder,
    private readonly path: string,
  ) {}

  // Undefined on other file systems, and if the path does not lead to the folder.
  #timeNow(): Time | undefined {
    try {
      if (!this.owners.isInMemory()) return undefined;
      const at = now();
      const folder = statSync(this.path, { bigint: true });
      const owners = statSync(join(this.path, 'owners'), { bigint: true });
      if (this.owners.identity() !== `${owners.dev}:${owners.ino}`) return undefined;
      return {
        text: `${folder.ctimeNs} ${owners.ino} ${owners.ctimeNs}`,
        folder: folder.ctimeNs,
        // A time to come is one before the clock was set back.
        isPast: [folder, owners].every(({ ctimeMs }) => Math.abs(at - Number(ctimeMs)) > TICK_MS),
      };
    } catch {
      return undefined;
    }
  }

  // The sum that is noted, if no name has changed in another tick.
  #notedAt(time: Time): number | undefined {
    const note = unlessRefused(() => this.notes.read(NOTE_FILE)?.toString('latin1'));
    const sum = Number(note?.slice(time.text.length));
    return note === noteOf(time, sum) ? sum : undefined;
  }

  readonly #sumOf = (names?: readonly string[]) => unlessRefused(() => this.owners.sumOfFiles(names));

  /**
   * True if no other program has added, removed or replaced a file. Needs no lock. `sumNow`: returns
   * {@link NativeFolder.sumOfFiles}.
   */
  areKept(sumNow = () => this.owners.sumOfFiles()): boolean {
    const time = this.#timeNow();
    if (time === undefined) return false;
    if (this.#certain === time.text) return true;
    const sum = this.#notedAt(time);
    const isKept = sum !== undefined && unlessRefused(sumNow) === sum;
    this.#certain = isKept && time.isPast ? time.text : undefined;
    return isKept;
  }

  /** Changes names. If the names were kept, they are. */
  readonly change: ChangeNames = (names, change, isDone = () => true) => {
    const time = this.#timeNow();
    const sum = time && this.#notedAt(time);
    if (sum === undefined) return change();
    // The change may not show in the time.
    if (!time!.isPast) unlessRefused(() => this.notes.remove(NOTE_FILE));
    const before = this.#sumOf(names);
    let isOver = () => true;
    try {
      const result = change();
      isOver = () => isDone(result);
      return result;
    } finally {
      const after = this.#sumOf(names);
      const end = this.#timeNow();
      // What another program has done meanwhile, or in the same tick, is in the files, not in the sum.
      if (before !== undefined && after !== undefined && end?.folder === time!.folder && isOver())
        this.#note(end, (sum - before + after) >>> 0);
    }
  };

  /**
   * Calls `look`. If it is complete, each living owner has its file under its name, and the names
   * are kept unless they have changed meanwhile.
   */
  keepAfter<T extends { readonly isComplete: boolean }>(look: () => T): T {
    const time = this.#timeNow();
    const sum = time && this.#sumOf();
    const found = look();
    if (
      found.isComplete &&
      sum !== undefined &&
      this.#timeNow()?.text === time!.text &&
      this.#sumOf() === sum
    )
      this.#note(time!, sum);
    return found;
  }

  // Without a note, others look at /proc/locks.
  #note(time: Time, sum: number): void {
    unlessRefused(() => this.notes.replace(NOTE_FILE, noteOf(time, sum)));
  }
}
