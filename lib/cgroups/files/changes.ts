// Changes: records an operation's changes to a hierarchy, so that a failure undoes them.
import { NumalignError, reworded } from '../../base/errors.js';
import { attempt, type CgroupStep } from './cgroup-error.js';
import type { CgroupFiles } from './cgroup-files.js';

export class Changes {
  readonly #undo: (() => void)[] = [];

  private constructor(private readonly files: CgroupFiles) {}

  /** Runs `operation`. If it throws, undoes its changes, the last first. */
  static of<T>(files: CgroupFiles, operation: (changes: Changes) => T): T {
    const changes = new Changes(files);
    try {
      return operation(changes);
    } catch (error) {
      throw changes.#undone(error);
    }
  }

  /** `former`: the text that restores the value before. */
  write(step: CgroupStep & { readonly value: string }, former: string): void {
    const { path, value } = step;
    attempt(step, () => this.files.write(path, value));
    this.did(() => this.files.write(path, former));
  }

  did(undo: () => void): void {
    this.#undo.push(undo);
  }

  #undone(error: unknown): unknown {
    let failure: unknown;
    for (const undo of this.#undo.reverse()) {
      try {
        undo();
      } catch (cause) {
        failure ??= cause;
      }
    }
    if (failure === undefined || !(error instanceof NumalignError)) return error;
    const message = `${error.message}; and the former value could not be restored: ${(failure as Error).message}`;
    return reworded(error, message, { restored: false, cause: failure });
  }
}
