// Laggards: grants that do not take their fair share of free CPUs, because their process is stopped
// or busy, or because they are being handed over. After a while, other grants get these CPUs.
import { type ElasticPod, elasticGrant } from '../decision/elastic-grants/elastic-view.js';

const PATIENCE_MS = 5_000;

interface Laggard {
  readonly cpus: number;
  readonly end: number;
}

export class Laggards {
  #last = new Map<string, Laggard>();
  #now = new Map<string, Laggard>();

  /**
   * True if the free CPUs that a grant should take are still left to it. The wait begins again when
   * the grant's size changes.
   */
  isAwaited(pod: ElasticPod, now: number): boolean {
    const { uid, cpus } = elasticGrant(pod);
    const before = this.#last.get(uid);
    const laggard = before?.cpus === cpus ? before : { cpus, end: now + PATIENCE_MS };
    this.#now.set(uid, laggard);
    return laggard.end > now;
  }

  /**
   * Forgets grants that were not passed to `isAwaited` since the last call. Returns the time at
   * which the next wait ends; undefined if no grant is awaited.
   */
  next(now: number): number | undefined {
    this.#last = this.#now;
    this.#now = new Map();
    const ends = [...this.#last.values()].map(({ end }) => end).filter((end) => end > now);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }
}
