// Refusals: grants whose owners refused to give up CPUs, or did not answer. They are not asked
// again for a while, but not forever: a stopped process may continue.
const REFUSAL_MS = 60_000;

export class Refusals {
  // The end of each refusal by the grant's uid, the earliest first.
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

  /** The time at which the next grant may be asked again; undefined if all may be asked now. */
  next(now: number): number | undefined {
    for (const [uid, end] of this.#ends) {
      if (end > now) return end;
      this.#ends.delete(uid);
    }
    return undefined;
  }
}
