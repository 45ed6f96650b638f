// Backoff: how long to wait after failures in a row.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;

export class Backoff {
  #failures = 0;
  readonly #random: () => number;

  /** `random` returns 0 to 1, so that not all nodes of a cluster call at once. */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** The wait after one more failure: up to twice the previous one, half of it random. */
  next(atLeastMs = 0): number {
    const most = Math.min(FIRST_MS * 2 ** this.#failures, LONGEST_MS);
    this.#failures++;
    return Math.round(Math.max(atLeastMs, most / 2) + (most / 2) * this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Resolves after `ms`, or when the signal is aborted. Keeps the process alive. */
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
