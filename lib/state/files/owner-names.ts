// OwnerNames: whether the files in owners/ are those that numalign put there; native/platform/files
// has the rules.
import { unlessRefused } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder, NativeOwnerNames } from '../../base/native-files.js';

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

export class OwnerNames {
  readonly #names: NativeOwnerNames;

  /** See {@link NativeOwnerNames}. */
  constructor(owners: NativeFolder, notes: NativeFolder, path: string) {
    this.#names = new native.OwnerNames(owners, notes, path);
  }

  /**
   * True if no other program has added, removed or replaced a file. Needs no lock. `sumNow`: returns
   * the sum that a survey has found.
   */
  areKept(sumNow?: () => number): boolean {
    if (!sumNow) return this.#names.areKept();
    const answer = this.#names.areNoted();
    if (answer !== undefined) return answer;
    const sum = unlessRefused(sumNow);
    return sum !== undefined && this.#names.confirm(sum);
  }

  /** Changes names. If the names were kept, they are. */
  readonly change: ChangeNames = (names, change, isDone = () => true) => {
    if (!this.#names.beginChange(names)) return change();
    let isOver = () => true;
    try {
      const result = change();
      isOver = () => isDone(result);
      return result;
    } finally {
      // Another program may come between until the end.
      if (this.#names.endChange() && isOver()) this.#names.noteChange();
    }
  };

  /**
   * Calls `look`. If it is complete, each living owner has its file under its name, and the names
   * are kept unless they have changed meanwhile.
   */
  keepAfter<T extends { readonly isComplete: boolean }>(look: () => T): T {
    const isBegun = this.#names.beginLook();
    const found = look();
    if (isBegun && found.isComplete) this.#names.endLook();
    return found;
  }
}
