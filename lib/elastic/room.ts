// Room: what grants that shrink by themselves give up for a request that finds none.

import { withoutPlaceholder } from '../account/moves/move-steps.js';
import { poolOf, runningCpus } from '../account/pod-holdings.js';
import { freeCpus } from '../account/pools.js';
import { questionOf } from '../admission/admit.js';
import { assignmentsOf } from '../admission/on-record.js';
import { PERSISTENT_OWNER } from '../admission/placed-pod.js';
import type { Site } from '../admission/site.js';
import { podExclusiveCount } from '../decision/cpus/cpu-choices.js';
import { decideWhether, POOLS } from '../decision/decision.js';
import { type ElasticPod, elasticPods, isSettled } from '../decision/elastic-grants/elastic-view.js';
import { shrinksFor } from '../decision/elastic-grants/shrinks.js';
import { NEVER } from '../decision/question.js';
import type { AdmissionRequest } from '../input/request.js';
import { releaseRoom } from '../moves/move-grant.js';
import { groundOf, livingState } from './elastic-ground.js';
import { settledGrants, shrinkGrants } from './shrink-grants.js';

// Others come and go meanwhile.
const MOST_ROUNDS = 8;

export class Room {
  readonly #site: Site;
  readonly #request: AdmissionRequest;
  /** By which it is kept. */
  readonly #uid: string;
  readonly #signal: AbortSignal | undefined;
  // Grants whose owners have refused, or have not answered.
  readonly #refused = new Set<string>();
  #rounds = 0;
  #isKept = false;

  constructor(site: Site, request: AdmissionRequest, uid: string, signal: AbortSignal | undefined) {
    this.#site = site;
    this.#request = request;
    this.#uid = uid;
    this.#signal = signal;
  }

  /** Whether there is room now, or more than before. @throws the signal's reason, the ledger's errors */
  async make(): Promise<boolean> {
    const { ledger } = this.#site;
    if (elasticPods(assignmentsOf(this.#site, ledger.read())).length === 0) return false;
    for (; this.#rounds < MOST_ROUNDS; this.#rounds++) {
      const pods = this.#shrinks();
      if (!pods) {
        if (await settledGrants(this.#site, this.#signal)) continue;
        // Whoever waits may ask again once others have come or gone.
        this.#rounds = 0;
        return false;
      }
      this.#isKept = true;
      const request = { for: this.#uid, signal: this.#signal };
      const refused = await shrinkGrants(this.#site, pods, request);
      for (const uid of refused) this.#refused.add(uid);
      if (refused.length > 0) continue;
      this.#rounds++;
      return true;
    }
    return false;
  }

  #shrinks() {
    const site = this.#site;
    const state = withoutPlaceholder(livingState(site), this.#uid);
    const { pod, placement } = this.#request;
    const pools = POOLS[placement.isolation];
    const mayGive = (each: ElasticPod) =>
      isSettled(each) && !this.#refused.has(each.uid) && pools.includes(poolOf(each));
    const givers = elasticPods(state)
      .filter((each) => mayGive(each) && runningCpus(each).size > each.elastic.min)
      .map((each) => ({ pod: each, least: each.elastic.min }));
    if (givers.length === 0) return undefined;
    const ground = groundOf(site, state);
    const question = {
      ...questionOf(site, this.#request, state, state.pods),
      // What custom providers allocate cannot be tried.
      ...{ providers: [], owner: PERSISTENT_OWNER, uid: '', now: NEVER, dryRun: true },
    };
    const free = Math.max(...pools.map((pool) => freeCpus(state, ground.present, pool).size));
    return shrinksFor(ground, {
      givers,
      missing: podExclusiveCount(pod, placement) - free,
      isMet: (next) => decideWhether({ ...question, state: next }) !== undefined,
    });
  }

  /** What is kept is free again, where the request has not taken it. */
  async release(): Promise<void> {
    if (this.#isKept) await releaseRoom(this.#site, this.#uid);
  }
}
