// ShrunkRoom: room for a request that is rejected, from grants that shrink by themselves.
import { poolOf, runningCpus } from '../account/pod-holdings.js';
import { freeCpus } from '../account/pools.js';
import type { RoomSource } from '../admission/room/room.js';
import type { Site } from '../admission/site.js';
import { podExclusiveCount } from '../decision/cpus/cpu-choices.js';
import { decideWhether, POOLS } from '../decision/decision.js';
import { type ElasticPod, elasticPods, isSettled } from '../decision/elastic-grants/elastic-view.js';
import { shrinksFor } from '../decision/elastic-grants/shrinks.js';
import type { Question } from '../decision/question.js';
import type { Rejection } from '../decision/rejection.js';
import { settledGrants, shrinkGrants } from './shrink-grants.js';

export class ShrunkRoom implements RoomSource {
  readonly #uid: string;
  readonly #site: Site;
  readonly #signal: AbortSignal | undefined;
  // Grants whose owners have refused, or have not answered.
  readonly #refused = new Set<string>();

  constructor(site: Site, uid: string, signal: AbortSignal | undefined) {
    this.#site = site;
    this.#uid = uid;
    this.#signal = signal;
  }

  async make(shortage: Question, rejection: Rejection): Promise<Rejection | undefined> {
    if (elasticPods(shortage.state).length === 0) return rejection;
    const pods = this.#shrinks(shortage);
    if (!pods) return (await settledGrants(this.#site, this.#signal)) ? undefined : rejection;
    const refused = await shrinkGrants(this.#site, pods, { for: this.#uid, signal: this.#signal });
    for (const uid of refused) this.#refused.add(uid);
    return undefined;
  }

  #shrinks(shortage: Question) {
    const { topology, resources, state, present, request } = shortage;
    const pools = POOLS[request.placement.isolation];
    const mayGive = (pod: ElasticPod) =>
      isSettled(pod) && !this.#refused.has(pod.uid) && pools.includes(poolOf(pod));
    const givers = elasticPods(state)
      .filter((pod) => mayGive(pod) && runningCpus(pod).size > pod.elastic.min)
      .map((pod) => ({ pod, least: pod.elastic.min }));
    if (givers.length === 0) return undefined;
    const free = Math.max(...pools.map((pool) => freeCpus(state, present, pool).size));
    // What custom providers allocate cannot be tried.
    const question = { ...shortage, providers: [], dryRun: true };
    return shrinksFor(
      { topology, resources, state, present },
      {
        givers,
        missing: podExclusiveCount(request.pod, request.placement) - free,
        isMet: (next) => decideWhether({ ...question, state: next }) !== undefined,
      },
    );
  }
}
