// Laggards: grants that do not take free CPUs that are theirs by the rule. Their processes are stopped
// or busy, or they are being handed over. After a while the CPUs are there for the others.
import { type ElasticPod, elasticGrant } from '../decision/elastic-grants/elastic-view.js';

const PATIENCE_MS = 5_000;

interface Laggard {
  readonly cpus: number;
  readonly end: number;
}

export class Laggards {
  #last = new Map<string, Laggard>();
  #now = new Map<string, Laggard>();

  /** One that has free CPUs to take: whether they are left to it. It begins again once it has changed. */
  isAwaited(pod: ElasticPod, now: number): boolean {
    const { uid, cpus } = elasticGrant(pod);
    const known = this.#last.get(uid);
    const laggard = known?.cpus === cpus ? known : { cpus, end: now + PATIENCE_MS };
    this.#now.set(uid, laggard);
    return laggard.end > now;
  }

  /**
   * Forgets those that were not asked about since the last call. Answers when the next of the others is
   * not awaited any more; undefined: none is.
   */
  next(now: number): number | undefined {
    this.#last = this.#now;
    this.#now = new Map();
    const ends = [...this.#last.values()].map(({ end }) => end).filter((end) => end > now);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }
}
