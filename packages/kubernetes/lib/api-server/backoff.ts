// Backoff: how long to wait after each failure in a row.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;

export class Backoff {
  #failures = 0;
  readonly #random: () => number;

  /** `random`: from 0 to 1, so that not all nodes of a cluster come at once. */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** After one more failure: twice as long as after the last, half of it by chance. */
  next(atLeastMs = 0): number {
    const most = Math.min(FIRST_MS * 2 ** this.#failures, LONGEST_MS);
    this.#failures++;
    return Math.round(Math.max(atLeastMs, most / 2) + (most / 2) * this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Resolves after so long, or as soon as the signal is aborted. Holds the process. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
