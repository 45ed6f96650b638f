// Backoff: the pauses after failures in a row. And `retry`, for what no caller waits for.

/** How long the pauses of a {@link Backoff} are. */
export interface Pauses {
  /** The pause after the first failure that one follows. */
  readonly firstMs: number;
  /** No pause is longer. */
  readonly longestMs: number;
  /** How many failures no pause follows; default: none. */
  readonly free?: number;
  /** Returns 0 to 1, so that not all that fail call again at once; default: 1, the whole pause. */
  readonly random?: () => number;
}

/** The pauses after failures in a row, each twice as long as the one before. */
export class Backoff {
  readonly #pauses: Pauses;
  #failures = 0;

  constructor(pauses: Pauses) {
    this.#pauses = pauses;
  }

  /** The number of failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** The pause after one more failure, half of it random. */
  next(atLeastMs = 0): number {
    const { firstMs, longestMs, free = 0, random = () => 1 } = this.#pauses;
    const doublings = this.#failures++ - free;
    if (doublings < 0) return atLeastMs;
    const most = Math.min(firstMs * 2 ** doublings, longestMs);
    return Math.round(Math.max(atLeastMs, most / 2) + (most / 2) * random());
  }

  /** Call this after a success. */
  reset(): void {
    this.#failures = 0;
  }
}

interface Retries extends Partial<Pauses> {
  /** Default: no limit. */
  readonly mostAttempts?: number;
  /** `isLast`: it is not tried again. */
  readonly onError?: (error: unknown, isLast: boolean) => void;
}

/**
 * Makes an attempt, and makes it again after a pause if it throws or returns false: a lock may be
 * held, or the disk full. Resolves after the first attempt, and never rejects. Does not keep the
 * process alive.
 */
export function retry(
  attempt: () => unknown,
  { mostAttempts = Number.POSITIVE_INFINITY, onError = () => {}, ...pauses }: Retries = {},
): Promise<void> {
  const backoff = new Backoff({ firstMs: 50, longestMs: 30_000, ...pauses });
  const run = async () => {
    const isLast = backoff.failures + 1 >= mostAttempts;
    try {
      if ((await attempt()) !== false) return;
    } catch (error) {
      onError(error, isLast);
    }
    if (!isLast) setTimeout(run, backoff.next()).unref();
  };
  return run();
}
