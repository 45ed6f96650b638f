// LookBudget: how often to look at what changes without end.

const LOOKS_AT_ONCE = 10;
const PERIOD_MS = 1000;

/** Ten looks at once, and one more for every second since. */
export class LookBudget {
  #left = LOOKS_AT_ONCE;
  #at: number | undefined;

  /**
   * Takes a look: answers 0. Where none is left, answers after how many milliseconds, rounded up, one
   * will be. `now`: in milliseconds, of a clock that never goes back.
   */
  take(now: number): number {
    this.#left = Math.min(LOOKS_AT_ONCE, this.#left + (now - (this.#at ?? now)) / PERIOD_MS);
    this.#at = now;
    if (this.#left < 1) return Math.ceil((1 - this.#left) * PERIOD_MS);
    this.#left--;
    return 0;
  }
}
