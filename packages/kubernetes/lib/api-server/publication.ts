// Publication: what is due is written to the API server: never twice at once, not too often, and again
// after a failure.
import { anySignal } from 'numalign/tools';
import type { ApiError } from './api-error.js';
import { newBackoff, pause } from './backoff.js';

export interface PublicationOptions {
  /** Writes what is due by then. It is called again if that was asked for meanwhile, or if it rejects. */
  readonly publish: () => Promise<void>;
  /** Hears of each failure, before the pause. */
  readonly failed: (error: ApiError) => void;
  /** Ends it. */
  readonly signal: AbortSignal;
}

export class Publication {
  readonly #options: PublicationOptions;
  readonly #backoff = newBackoff();
  #run: Promise<void> | undefined;
  #isDue = false;
  #earliest = 0;
  // Ends a pause after a failure.
  #wake = new AbortController();

  constructor(options: PublicationOptions) {
    this.#options = options;
  }

  /** Something is due. */
  ask(): void {
    this.#isDue = true;
    if (this.#run || this.#options.signal.aborted) return;
    this.#run = this.#publishDue().finally(() => {
      this.#run = undefined;
    });
  }

  /** What is due next waits as long, in milliseconds from now. */
  rest(ms: number): void {
    this.#earliest = performance.now() + ms;
  }

  /** What has failed is tried again at once. */
  retry(): void {
    this.#wake.abort();
  }

  /** Resolves once nothing is written any more; the signal must have been aborted. */
  async end(): Promise<void> {
    await this.#run;
  }

  async #publishDue(): Promise<void> {
    const { publish, failed, signal } = this.#options;
    while (this.#isDue && !signal.aborted) {
      const early = this.#earliest - performance.now();
      if (early > 0) {
        await pause(early, signal);
        continue;
      }
      this.#isDue = false;
      try {
        await publish();
        this.#backoff.reset();
      } catch (error) {
        if (signal.aborted) return;
        this.#isDue = true;
        failed(error as ApiError);
        this.#wake = new AbortController();
        const ms = this.#backoff.next((error as ApiError).retryAfterMs);
        await pause(ms, anySignal(this.#wake.signal, signal));
      }
    }
  }
}
