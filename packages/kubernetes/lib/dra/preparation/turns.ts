// Turns: work on the same thing is done one after the other; that on others does not wait.

export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` after all that was asked for the same key before. */
  take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    const settled = turn.then(
      () => {},
      () => {},
    );
    this.#last.set(key, settled);
    void settled.then(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    });
    return turn;
  }

  /** Resolves once nothing is in progress. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
