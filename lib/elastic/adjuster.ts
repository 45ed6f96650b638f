// Adjuster: has the grants of this environment grow where there is room, and ask others for their
// share. One for each state: it looks after commits while there is such a grant, and nothing wakes it
// in between. Not at once: what is free for a moment only is left to those who ask for it.
import { randomUUID } from 'node:crypto';
import { withoutPlaceholder } from '../account/moves/move-steps.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { poolOf } from '../account/pod-holdings.js';
import { publishError } from '../admission/diagnostics.js';
import type { Site } from '../admission/site.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { elasticTargets } from '../decision/elastic/elastic-targets.js';
import { elasticSize } from '../decision/elastic-grants/elastic-size.js';
import {
  type ElasticPod,
  elasticPods,
  elasticView,
  isSettled,
} from '../decision/elastic-grants/elastic-view.js';
import { growthOf, growthRequest } from '../decision/elastic-grants/growth.js';
import { giveBackRoom } from '../moves/kept-room.js';
import { moveGrant } from '../moves/move-grant.js';
import type { Store } from '../state/store.js';
import { groundOf, livingState } from './elastic-ground.js';
import { shrinkGrants } from './shrink-grants.js';

const GROWTH_DELAY_MS = 200;
/** A grant whose owner has refused, or has not answered, is not asked again for so long. */
const REFUSAL_MS = 60_000;

// What the next change of the state tells.
const LATER = ['ERR_GRANT_BUSY', 'ERR_UNKNOWN_GRANT', 'ERR_NOT_MOVED', 'ERR_INVALID_ARGUMENT'];

class Adjuster {
  readonly #store: Store;
  #site: Site | undefined;
  #stop: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isAtWork = false;
  // How often in a row others gave up CPUs, or came and went, and nothing has grown.
  #failures = 0;
  // When, by the uid of the grant.
  readonly #refusals = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
  }

  follow(site: Site): void {
    this.#site = site;
    // It does not keep the process alive: the grant ends with that.
    this.#stop ??= this.#store.watch(() => this.#look(), { isQuiet: true });
    this.#look();
  }

  #look(delayMs = GROWTH_DELAY_MS): void {
    const own = unlessRefused(() => this.#ownGrants());
    if (!own) return;
    if (own.length === 0) {
      this.#stop?.();
      this.#stop = undefined;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      return;
    }
    if (this.#timer || this.#isAtWork || !own.some((pod) => this.#mayGrow(pod))) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#adjust();
    }, delayMs).unref();
  }

  #ownGrants(): readonly ElasticPod[] {
    const { owners } = this.#store;
    const state = this.#store.read()?.assignments;
    return state
      ? elasticPods(state).filter(({ owner }) => owner.kind === 'process' && owners.isOwn(owner))
      : [];
  }

  // By numbers alone: whether a look is worth while.
  #mayGrow(pod: ElasticPod): boolean {
    const { state, present } = groundOf(this.#site!, livingState(this.#site!));
    const { grants, spare } = elasticView(state, present, poolOf(pod));
    const own = grants.find(({ uid }) => uid === pod.uid)!;
    if (!isSettled(pod) || own.cpus === own.max) return false;
    return spare > 0 || (elasticTargets(grants, { spare })?.get(pod.uid) ?? 0) > own.cpus;
  }

  async #adjust(): Promise<void> {
    const before = this.#store.read()?.generation;
    this.#isAtWork = true;
    const end = this.#store.use();
    let hasGrown = false;
    try {
      for (const { uid } of this.#ownGrants()) if (await this.#grow(uid)) hasGrown = true;
    } catch (error) {
      publishError(this.#site!, 'apply', error);
    } finally {
      this.#isAtWork = false;
      end();
    }
    unlessRefused(() => {
      // Commits that came meanwhile have not been looked at.
      const isChanged = this.#store.read()?.generation !== before;
      this.#failures = hasGrown || !isChanged ? 0 : this.#failures + 1;
      if (isChanged) this.#look(Math.min(GROWTH_DELAY_MS * 2 ** this.#failures, REFUSAL_MS));
      else if (this.#refusals.size > 0) this.#look(REFUSAL_MS);
    });
  }

  async #grow(uid: string): Promise<boolean> {
    const site = this.#site!;
    const find = (state: ReturnType<typeof livingState>) =>
      elasticPods(state).find((each) => each.uid === uid);
    const state = livingState(site);
    const pod = find(state);
    if (!pod) return false;
    const ground = groundOf(site, state);
    const grown = growthOf(ground, pod);
    if (grown) return this.#resize(grown, uid);
    const asked = growthRequest(ground, pod, (each) => !this.#hasRefused(each.uid));
    if (!asked) return false;
    const request = randomUUID();
    try {
      const refused = await shrinkGrants(site, asked.shrinks, { for: request });
      for (const each of refused) this.#refusals.set(each, Date.now());
      const open = withoutPlaceholder(livingState(site), request);
      const now = find(open);
      const larger = now && isSettled(now) ? elasticSize(groundOf(site, open), now, asked.cpus) : undefined;
      return larger ? await this.#resize(larger.pod, uid, request) : false;
    } finally {
      await giveBackRoom(site, request);
    }
  }

  // Whether it is so.
  async #resize(grown: PodAssignment, uid: string, room?: string): Promise<boolean> {
    try {
      await moveGrant(this.#site!, uid, grown, { for: uid, room });
      return true;
    } catch (error) {
      if (error instanceof NumalignError && LATER.includes(error.code)) return false;
      throw error;
    }
  }

  #hasRefused(uid: string): boolean {
    const at = this.#refusals.get(uid);
    if (at !== undefined && Date.now() - at < REFUSAL_MS) return true;
    this.#refusals.delete(uid);
    return false;
  }
}

const newAdjuster = (store: Store) => new Adjuster(store);

/** A grant has become this environment's: where it grows by itself, it does from now on. */
export function followGrowth(site: Site, { elastic, owner }: PodAssignment): void {
  if (elastic === undefined || owner.kind !== 'process' || !site.ledger.owners.isOwn(owner)) return;
  site.ledger.registry.of(newAdjuster).follow(site);
}
