// Refusals: grants that are not asked for CPUs for a while, since their owners have refused, or have not
// answered. Not for ever: a process that was stopped goes on.
const REFUSAL_MS = 60_000;

export class Refusals {
  // Until when, by the uid of the grant: the first to end is the first.
  readonly #ends = new Map<string, number>();

  add(uids: readonly string[], now: number): void {
    for (const uid of uids) {
      this.#ends.delete(uid);
      this.#ends.set(uid, now + REFUSAL_MS);
    }
  }

  has(uid: string, now: number): boolean {
    return (this.#ends.get(uid) ?? now) > now;
  }

  /** When the next of them may be asked again; undefined: all may. */
  next(now: number): number | undefined {
    for (const [uid, end] of this.#ends) {
      if (end > now) return end;
      this.#ends.delete(uid);
    }
    return undefined;
  }
}
