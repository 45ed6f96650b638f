// ShrunkRoom: makes room for a rejected request by shrinking elastic grants.
import type { RoomSource } from '../admission/room.js';
import type { Site } from '../admission/site.js';
import { elasticPods } from '../decision/elastic-grants/elastic-view.js';
import { roomByShrinking } from '../decision/elastic-grants/room-by-shrinking.js';
import type { Question } from '../decision/question.js';
import type { Rejection } from '../decision/rejection.js';
import { settledGrants, shrinkGrants } from './shrink-grants.js';

export class ShrunkRoom implements RoomSource {
  readonly #uid: string;
  readonly #site: Site;
  readonly #signal: AbortSignal | undefined;
  // Grants whose owners have refused, or have not answered.
  readonly #refusals = new Set<string>();

  constructor(site: Site, uid: string, signal: AbortSignal | undefined) {
    this.#site = site;
    this.#uid = uid;
    this.#signal = signal;
  }

  async make(shortage: Question, rejection: Rejection): Promise<Rejection | undefined> {
    if (elasticPods(shortage.state).length === 0) return rejection;
    const shrinks = roomByShrinking(shortage, ({ uid }) => !this.#refusals.has(uid));
    if (!shrinks)
      return (await settledGrants(this.#site, shortage.state, this.#signal)) ? undefined : rejection;
    const pods = shrinks.map(({ after }) => after);
    const request = { for: this.#uid, signal: this.#signal };
    for (const uid of await shrinkGrants(this.#site, pods, request)) this.#refusals.add(uid);
    return undefined;
  }
}
