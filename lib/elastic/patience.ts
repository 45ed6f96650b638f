// Patience: which grants a round of attempts asks for CPUs, and which it leaves free CPUs to. A round
// has one moment: a pause that ends during the round counts as one that is still to end.
import type { ElasticPod } from '../decision/elastic-grants/elastic-view.js';
import { Laggards } from './laggards.js';
import { Refusals } from './refusals.js';

export class Patience {
  readonly #refusals = new Refusals();
  readonly #laggards = new Laggards();
  // When the round began.
  #now = 0;

  beginRound(): void {
    this.#now = performance.now();
  }

  /** Whether the grant may be asked for CPUs. */
  isOpen({ uid }: ElasticPod): boolean {
    return !this.#refusals.has(uid, this.#now);
  }

  /** Whether free CPUs are left to the grant. */
  isAwaited(pod: ElasticPod): boolean {
    return this.#laggards.isAwaited(pod, this.#now);
  }

  /** These grants have been asked in vain. */
  addRefusals(uids: readonly string[]): void {
    this.#refusals.add(uids, performance.now());
  }

  /** Answers when the next pause ends that was seen in the round; undefined: there is none. */
  endRound(): number | undefined {
    const pauses = [this.#refusals.next(this.#now), this.#laggards.next(this.#now)];
    const ends = pauses.filter((end) => end !== undefined);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }
}
