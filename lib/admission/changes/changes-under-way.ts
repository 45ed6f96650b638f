// ChangesUnderWay: grants that this environment is resizing or moving. What else it has announced on
// record will not come, and is called off.

class ChangesUnderWay {
  readonly #changes = new Map<string, Set<object>>();

  has(uid: string): boolean {
    return this.#changes.has(uid);
  }

  /** Until the answer is called. Several may be about one grant: who asks for a move, and who makes it. */
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

  /** None of it comes any more. */
  drop(uid: string): void {
    this.#changes.delete(uid);
  }
}

export const changesUnderWay = () => new ChangesUnderWay();
