// OwnGrants: the grants that a manager has got for this process.
import type { PodAssignment } from '../account/pod-assignment.js';
import { findGrant } from '../admission/grants/held-grant.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { followGrowth } from '../elastic/adjuster.js';
import { releaseGrant } from '../grants/release-grant.js';
import { answerMoves } from '../moves/mover.js';

// From so many on it forgets those that are this process's no more.
const FIRST_LIMIT = 64;

export class OwnGrants {
  readonly #site: Site;
  #pods: PodAssignment[] = [];
  #limit = FIRST_LIMIT;
  readonly #coming = new Set<Promise<unknown>>();

  constructor(site: Site) {
    this.#site = site;
  }

  /** Counts what is being admitted, once it is; nothing where `podOf` answers undefined. */
  async note<T>(coming: Promise<T>, podOf: (admission: T) => PodAssignment | undefined): Promise<T> {
    this.#coming.add(coming);
    try {
      const admission = await coming;
      const pod = podOf(admission);
      if (pod) this.#add(pod);
      return admission;
    } finally {
      this.#coming.delete(coming);
    }
  }

  #add(pod: PodAssignment): void {
    this.#pods.push(pod);
    answerMoves(this.#site, pod);
    if (pod.elastic) followGrowth(this.#site, pod);
    if (this.#pods.length < this.#limit) return;
    this.#pods = this.#held();
    this.#limit = Math.max(FIRST_LIMIT, 2 * this.#pods.length);
  }

  /**
   * Releases those that are this process's still; all of them, whichever fails.
   * @throws the error of the one that fails, an AggregateError of several
   */
  async release(): Promise<void> {
    await Promise.allSettled(this.#coming);
    const errors: unknown[] = [];
    for (const pod of this.#held()) {
      await releaseGrant(this.#site, pod).catch((error) => errors.push(error));
    }
    this.#pods = [];
    if (errors.length > 1) throw new AggregateError(errors, `${errors.length} grants could not be released`);
    if (errors.length === 1) throw errors[0];
  }

  // Others were released, or handed to another process, or outlive this one.
  #held(): PodAssignment[] {
    const { ledger } = this.#site;
    const state = assignmentsOf(this.#site, ledger.read());
    return this.#pods.flatMap((pod) => {
      const now = findGrant(state, pod);
      return now && ledger.owners.isOwn(now.owner) ? [now] : [];
    });
  }
}
