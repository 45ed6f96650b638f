// Lifetime: whether a manager is still in use.
import { NumalignError } from '../base/errors.js';

export class Lifetime {
  readonly #end = new AbortController();

  /** Aborted with ERR_MANAGER_CLOSED at the end. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  get isOver(): boolean {
    return this.signal.aborted;
  }

  /** @throws ERR_MANAGER_CLOSED */
  check(): void {
    if (this.isOver) throw closedError();
  }

  end(): void {
    if (!this.isOver) this.#end.abort(closedError());
  }
}

function closedError(): NumalignError {
  return new NumalignError('ERR_MANAGER_CLOSED', 'the manager has been closed');
}
