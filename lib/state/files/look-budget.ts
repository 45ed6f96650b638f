// LookBudget: limits how often to look at something that changes all the time.

const LOOKS_AT_ONCE = 10;
const PERIOD_MS = 1000;

/** Allows ten looks at once, and one more for each second that passes. */
export class LookBudget {
  #rest = LOOKS_AT_ONCE;
  #at: number | undefined;

  /**
   * Takes one look and returns 0. If none is left, returns the milliseconds until the next, rounded
   * up. `now`: milliseconds of a monotonic clock.
   */
  take(now: number): number {
    this.#rest = Math.min(LOOKS_AT_ONCE, this.#rest + (now - (this.#at ?? now)) / PERIOD_MS);
    this.#at = now;
    if (this.#rest < 1) return Math.ceil((1 - this.#rest) * PERIOD_MS);
    this.#rest--;
    return 0;
  }
}
