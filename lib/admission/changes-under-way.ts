// ChangesUnderWay: grants that this environment is resizing or moving. Any other change that it
// announced on record is abandoned, and gets called off.

class ChangesUnderWay {
  readonly #changes = new Map<string, Set<object>>();

  has(uid: string): boolean {
    return this.#changes.has(uid);
  }

  /** Returns what ends the change. A grant may have two: the request for a move, and the move. */
  begin(uid: string): () => void {
    const changes = this.#changes.get(uid) ?? new Set();
    this.#changes.set(uid, changes);
    const change = {};
    changes.add(change);
    return () => {
      changes.delete(change);
      if (changes.size === 0 && this.#changes.get(uid) === changes) this.#changes.delete(uid);
    };
  }

  /** Forgets the changes of a grant: none will be carried out. */
  drop(uid: string): void {
    this.#changes.delete(uid);
  }
}

export const changesUnderWay = () => new ChangesUnderWay();
