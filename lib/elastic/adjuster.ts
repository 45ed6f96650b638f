// Adjuster: has the grants of this environment grow where there is room, and ask others for their
// share. One for each state: it looks after commits while there is such a grant, and in between only
// where a pause ends. Not at once: what is free for a moment only is left to those who ask for it.
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
  elasticGrant,
  elasticPods,
  elasticView,
  isSettled,
} from '../decision/elastic-grants/elastic-view.js';
import { growthOf, growthRequest } from '../decision/elastic-grants/growth.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { onlineCpus } from '../machine/online-cpus.js';
import { giveBackRoom } from '../moves/kept-room.js';
import { moveGrant } from '../moves/move-grant.js';
import type { Store } from '../state/store.js';
import { groundOf, livingState } from './elastic-ground.js';
import { Patience } from './patience.js';
import { shrinkGrants } from './shrink-grants.js';

const GROWTH_DELAY_MS = 200;
const LONGEST_PAUSE_MS = 60_000;

// It may be otherwise by the next attempt.
const LATER = ['ERR_GRANT_BUSY', 'ERR_UNKNOWN_GRANT', 'ERR_NOT_MOVED', 'ERR_INVALID_ARGUMENT'];

/** What became of an attempt; undefined: there is nothing to have. */
type Attempt = 'grown' | 'failed' | undefined;

class Adjuster {
  readonly #store: Store;
  #site: Site | undefined;
  // Those of the last time that it was told of them.
  #online: CpuSet | undefined;
  #stop: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  // When that is due.
  #due = 0;
  #isAtWork = false;
  // How many attempts in a row have failed, and until when there is none.
  #failures = 0;
  #pauseEnd = 0;
  readonly #patience = new Patience();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Looks where CPUs have come online, or gone offline, since the last call. */
  followCpus(site: Site): void {
    if (!this.#online?.equals(onlineCpus(site.topology))) this.follow(site);
  }

  follow(site: Site): void {
    this.#site = site;
    this.#online = onlineCpus(site.topology);
    // It does not keep the process alive: the grant ends with that.
    this.#stop ??= this.#store.watch(() => this.#look(), { isQuiet: true });
    this.#look();
  }

  // A record that cannot be read says nothing: the change that mends it is heard of.
  #look(): void {
    unlessRefused(() => this.#lookAtRecord());
  }

  #lookAtRecord(): void {
    const own = this.#ownGrants();
    if (!own) return;
    if (own.length === 0) {
      this.#stop?.();
      this.#stop = undefined;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      return;
    }
    if (this.#isAtWork) return;
    const due = Math.max(performance.now() + GROWTH_DELAY_MS, this.#pauseEnd);
    if (!this.#isDueBy(due) && this.#mayGrow(own)) this.#adjustAt(due);
  }

  #isDueBy(time: number): boolean {
    return this.#timer !== undefined && this.#due <= time;
  }

  #adjustAt(due: number): void {
    if (this.#isDueBy(due)) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#adjust();
    }, due - performance.now()).unref();
  }

  // Undefined where there is no record at present.
  #ownGrants(): readonly ElasticPod[] | undefined {
    const { owners } = this.#store;
    const state = unlessRefused(() => this.#store.read()?.assignments);
    return state && elasticPods(state).filter(({ owner }) => owner.kind === 'process' && owners.isOwn(owner));
  }

  #generation(): number | undefined {
    return unlessRefused(() => this.#store.read()?.generation);
  }

  // By numbers alone: whether an attempt is worth while.
  #mayGrow(own: readonly ElasticPod[]): boolean {
    const { state, present } = groundOf(this.#site!, livingState(this.#site!));
    return own.some((pod) => {
      if (!isSettled(pod) || elasticGrant(pod).cpus === pod.elastic.max) return false;
      const { grants, spare } = elasticView(state, present, poolOf(pod));
      return spare > 0 || (elasticTargets(grants, { spare })?.get(pod.uid) ?? 0) > elasticGrant(pod).cpus;
    });
  }

  async #adjust(): Promise<void> {
    const before = this.#generation();
    this.#patience.beginRound();
    this.#isAtWork = true;
    const end = this.#store.use();
    const attempts: Attempt[] = [];
    for (const { uid } of this.#ownGrants() ?? []) attempts.push(await this.#attempt(uid));
    this.#isAtWork = false;
    end();
    const hasFailed = attempts.includes('failed');
    if (attempts.includes('grown')) this.#failures = 0;
    if (hasFailed)
      this.#pauseEnd =
        performance.now() + Math.min(GROWTH_DELAY_MS * 2 ** ++this.#failures, LONGEST_PAUSE_MS);
    // Commits that came meanwhile have not been looked at.
    if (hasFailed || this.#generation() !== before) this.#look();
    const next = this.#patience.endRound();
    if (this.#stop && next !== undefined) this.#adjustAt(Math.max(next, this.#pauseEnd));
  }

  // What stands in the way of one does not keep the others from theirs.
  async #attempt(uid: string): Promise<Attempt> {
    try {
      return await this.#grow(uid);
    } catch (error) {
      publishError(this.#site!, 'apply', error);
      return 'failed';
    }
  }

  async #grow(uid: string): Promise<Attempt> {
    const site = this.#site!;
    const find = (state: ReturnType<typeof livingState>) =>
      elasticPods(state).find((each) => each.uid === uid);
    const state = livingState(site);
    const pod = find(state);
    if (!pod) return undefined;
    const ground = groundOf(site, state);
    const grown = growthOf(ground, pod, (each) => this.#patience.isAwaited(each));
    if (grown) return this.#resize(grown, uid);
    const asked = growthRequest(ground, pod, (each) => this.#patience.isOpen(each));
    if (!asked) return undefined;
    const request = randomUUID();
    try {
      this.#patience.addRefusals(await shrinkGrants(site, asked.shrinks, { for: request }));
      const open = withoutPlaceholder(livingState(site), request);
      const now = find(open);
      const larger = now && isSettled(now) ? elasticSize(groundOf(site, open), now, asked.cpus) : undefined;
      return larger ? await this.#resize(larger.pod, uid, request) : 'failed';
    } finally {
      await giveBackRoom(site, request);
    }
  }

  async #resize(grown: PodAssignment, uid: string, room?: string): Promise<Attempt> {
    try {
      await moveGrant(this.#site!, uid, grown, { for: uid, room });
      return 'grown';
    } catch (error) {
      if (error instanceof NumalignError && LATER.includes(error.code)) return 'failed';
      throw error;
    }
  }
}

const newAdjuster = (store: Store) => new Adjuster(store);

const growsHere = ({ ledger }: Site, { elastic, owner }: PodAssignment): boolean =>
  elastic !== undefined && owner.kind === 'process' && ledger.owners.isOwn(owner);

/** A grant has become this environment's: where it grows by itself, it does from now on. */
export function followGrowth(site: Site, pod: PodAssignment): void {
  if (growsHere(site, pod)) site.ledger.registry.of(newAdjuster).follow(site);
}

/** The machine may have other CPUs than before, where grants of this environment may grow. */
export function followCpus(site: Site, pods: readonly PodAssignment[]): void {
  if (pods.some((pod) => growsHere(site, pod))) site.ledger.registry.of(newAdjuster).followCpus(site);
}
