// GrowthWaits: the grants that are not asked for CPUs for a while, and those that free CPUs are left
// to for a while.
import { type ElasticPod, elasticGrant } from '../decision/changes/elastic-grants.js';

const REFUSAL_MS = 60_000;
const SLOW_GRANT_MS = 5_000;

/**
 * Grants whose owners refused to give up CPUs, or did not answer. They are not asked again for a
 * while, but not forever: a stopped process may continue.
 */
export class RefusingGrants {
  // The end of each refusal by the grant's uid, the earliest first.
  readonly #ends = new Map<string, number>();

  add(uids: readonly string[], now: number): void {
    for (const uid of uids) {
      this.#ends.delete(uid);
      this.#ends.set(uid, now + REFUSAL_MS);
    }
  }

  has(uid: string, now: number): boolean {
    return (this.#ends.get(uid) ?? now) > now;
  }

  /** The time at which the next grant may be asked again; undefined if all may be asked now. */
  next(now: number): number | undefined {
    for (const [uid, end] of this.#ends) {
      if (end > now) return end;
      this.#ends.delete(uid);
    }
    return undefined;
  }
}

interface Wait {
  readonly cpus: number;
  readonly end: number;
}

/**
 * Grants that do not take their fair share of free CPUs, because their process is stopped or busy,
 * or because they are being handed over. After a while, other grants get these CPUs.
 */
export class SlowGrants {
  #last = new Map<string, Wait>();
  #now = new Map<string, Wait>();

  /**
   * True if the free CPUs that a grant should take are still left to it. The wait begins again when
   * the grant's size changes.
   */
  isAwaited(pod: ElasticPod, now: number): boolean {
    const { uid, cpus } = elasticGrant(pod);
    const before = this.#last.get(uid);
    const wait = before?.cpus === cpus ? before : { cpus, end: now + SLOW_GRANT_MS };
    this.#now.set(uid, wait);
    return wait.end > now;
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

/**
 * The waits of rounds of attempts to grow. A round has one moment: a wait that ends during the round
 * counts as one that is still to end.
 */
export class GrowthWaits {
  readonly #refusingGrants = new RefusingGrants();
  readonly #slowGrants = new SlowGrants();
  // When the round began.
  #now = 0;

  beginRound(): void {
    this.#now = performance.now();
  }

  /** Whether the grant may be asked for CPUs. */
  mayAsk({ uid }: ElasticPod): boolean {
    return !this.#refusingGrants.has(uid, this.#now);
  }

  /** Whether free CPUs are left to the grant. */
  isAwaited(pod: ElasticPod): boolean {
    return this.#slowGrants.isAwaited(pod, this.#now);
  }

  /** These grants have been asked in vain. */
  addRefusals(uids: readonly string[]): void {
    this.#refusingGrants.add(uids, performance.now());
  }

  /** Returns when the next wait ends that was seen in the round; undefined: there is none. */
  endRound(): number | undefined {
    const waits = [this.#refusingGrants.next(this.#now), this.#slowGrants.next(this.#now)];
    const ends = waits.filter((end) => end !== undefined);
    return ends.length > 0 ? Math.min(...ends) : undefined;
  }
}
