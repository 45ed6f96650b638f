// OwnGrants: the grants that a manager made for this process.
import type { PodAssignment } from '../account/pod-assignment.js';
import { findGrant } from '../admission/grants/held-grant.js';
import { recordedState } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { followGrowth } from '../changes/adjuster.js';
import { answerMoves } from '../changes/mover.js';
import { release } from '../grants/release.js';

// At this number it forgets grants that this process no longer owns.
const FIRST_LIMIT = 64;

export class OwnGrants {
  readonly #site: Site;
  #pods: PodAssignment[] = [];
  #limit = FIRST_LIMIT;
  readonly #pending = new Set<Promise<unknown>>();

  constructor(site: Site) {
    this.#site = site;
  }

  /** Adds the pod of a pending admission once it is admitted; none if `podOf` returns undefined. */
  async note<T>(pending: Promise<T>, podOf: (admission: T) => PodAssignment | undefined): Promise<T> {
    this.#pending.add(pending);
    try {
      const admission = await pending;
      const pod = podOf(admission);
      if (pod) this.#add(pod);
      return admission;
    } finally {
      this.#pending.delete(pending);
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
   * Releases all grants that this process still owns, even if one release fails.
   * @throws the error of the failed release; an AggregateError if several fail
   */
  async release(): Promise<void> {
    await Promise.allSettled(this.#pending);
    const errors: unknown[] = [];
    for (const pod of this.#held()) {
      await release(this.#site, pod).catch((error) => errors.push(error));
    }
    this.#pods = [];
    if (errors.length > 1) throw new AggregateError(errors, `${errors.length} grants could not be released`);
    if (errors.length === 1) throw errors[0];
  }

  // The other grants were released or handed to another process, or outlive this one.
  #held(): PodAssignment[] {
    const { ledger } = this.#site;
    const state = recordedState(this.#site);
    return this.#pods.flatMap((pod) => {
      const now = findGrant(state, pod);
      return now && ledger.owners.isOwn(now.owner) ? [now] : [];
    });
  }
}
