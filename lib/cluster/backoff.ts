// Backoff: the wait before a worker that keeps dying is forked again. Pure.

/** A worker that has run this long has started well. */
export const STEADY_MS = 10_000;

const FIRST_MS = 100;
const LONGEST_MS = 30_000;

export class Backoff {
  #shortLives = 0;

  /** The number of lives in a row, up to the last, that were shorter than {@link STEADY_MS}. */
  get shortLives(): number {
    return this.#shortLives;
  }

  /**
   * The milliseconds to wait after a life of `lifeMs`: none after the first short life, then 100,
   * and twice as many each time, up to 30 s.
   */
  after(lifeMs: number): number {
    if (lifeMs >= STEADY_MS) {
      this.#shortLives = 0;
      return 0;
    }
    this.#shortLives++;
    return this.#shortLives === 1 ? 0 : Math.min(FIRST_MS * 2 ** (this.#shortLives - 2), LONGEST_MS);
  }
}
