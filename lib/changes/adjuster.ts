// Adjuster: makes elastic grants of this environment grow, into free CPUs or into CPUs that others
// have above their share. One per state: it looks after each commit, and when a pause ends. It
// waits a moment before each attempt: CPUs that are free only briefly should go to requests.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { isSettled, poolOf } from '../account/pod-holdings.js';
import { publishError } from '../admission/diagnostics.js';
import type { Host } from '../admission/host.js';
import { livingState } from '../admission/on-record.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { Backoff } from '../base/notices/backoff.js';
import {
  type ElasticPod,
  elasticGrant,
  elasticPods,
  elasticSize,
  elasticView,
} from '../decision/changes/elastic-grants.js';
import { elasticTargets } from '../decision/changes/elastic-targets.js';
import { growthOf, growthRequest } from '../decision/changes/growth.js';
import { withoutPlaceholder } from '../decision/changes/move-steps.js';
import type { ResizeFacts } from '../decision/resized-pod.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { onlineCpus } from '../machine/online-cpus.js';
import type { Store } from '../state/store.js';
import { maskOfGrant } from '../threads/mask-wish.js';
import { GrowthWaits } from './growth-waits.js';
import { giveBackRoom, moveGrant } from './move-grant.js';
import { resizeInput, shrinkGrants } from './shrink-grants.js';

const GROWTH_DELAY_MS = 200;
const LONGEST_PAUSE_MS = 60_000;

// Errors of a state that may have changed by the next attempt.
const LATER = ['ERR_GRANT_BUSY', 'ERR_UNKNOWN_GRANT', 'ERR_NOT_MOVED', 'ERR_INVALID_ARGUMENT'];

/** The outcome of an attempt; undefined: there was nothing to take. */
type Outcome = 'grown' | 'failed' | undefined;

class Adjuster {
  #host: Host | undefined;
  // As of the last call of `follow`.
  #online: CpuSet | undefined;
  #stop: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  // When the timer is due.
  #due = 0;
  #isAtWork = false;
  // After failed rounds in a row, and when its pause ends.
  readonly #backoff = new Backoff({ firstMs: 2 * GROWTH_DELAY_MS, longestMs: LONGEST_PAUSE_MS });
  #pauseEnd = 0;
  readonly #waits = new GrowthWaits();

  constructor(private readonly store: Store) {}

  /** Looks where CPUs have come online, or gone offline, since the last call. */
  followCpus(host: Host): void {
    if (!this.#online?.equals(onlineCpus(host.topology))) this.follow(host);
  }

  follow(host: Host): void {
    this.#host = host;
    this.#online = onlineCpus(host.topology);
    // The watch does not keep the process alive, because the grant ends with the process.
    this.#stop ??= this.store.watch(() => this.#look(), { isQuiet: true });
    this.#look();
  }

  // Ignores an unreadable record: the commit that repairs it causes another look.
  #look(): void {
    unlessRefused(() => this.#lookAtRecord());
  }

  #lookAtRecord(): void {
    const grants = this.#ownGrants();
    if (!grants) return;
    if (grants.length === 0) {
      this.#stop?.();
      this.#stop = undefined;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      return;
    }
    if (this.#isAtWork) return;
    const due = Math.max(performance.now() + GROWTH_DELAY_MS, this.#pauseEnd);
    if (!this.#isDueBy(due) && this.#mayGrow(grants)) this.#adjustAt(due);
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

  // Undefined if there is no readable record.
  #ownGrants(): readonly ElasticPod[] | undefined {
    const { owners } = this.store;
    const state = unlessRefused(() => this.store.read()?.assignments);
    return state && elasticPods(state).filter(({ owner }) => owner.kind === 'process' && owners.isOwn(owner));
  }

  #generation(): number | undefined {
    return unlessRefused(() => this.store.read()?.generation);
  }

  // Compares only numbers of CPUs, to see if an attempt is worthwhile.
  #mayGrow(ownGrants: readonly ElasticPod[]): boolean {
    const { state, present } = resizeInput(this.#host!, livingState(this.#host!));
    return ownGrants.some((pod) => {
      if (!isSettled(pod) || elasticGrant(pod).cpus === pod.elastic.max) return false;
      const { grants, spare } = elasticView(state, present, poolOf(pod));
      return spare > 0 || (elasticTargets(grants, { spare })?.get(pod.uid) ?? 0) > elasticGrant(pod).cpus;
    });
  }

  async #adjust(): Promise<void> {
    const before = this.#generation();
    this.#waits.beginRound();
    this.#isAtWork = true;
    const end = this.store.use();
    const attempts: Outcome[] = [];
    for (const { uid } of this.#ownGrants() ?? []) attempts.push(await this.#attempt(uid));
    this.#isAtWork = false;
    end();
    const hasFailed = attempts.includes('failed');
    if (attempts.includes('grown')) this.#backoff.reset();
    if (hasFailed) this.#pauseEnd = performance.now() + this.#backoff.next();
    // #look ignores commits while a round is at work.
    if (hasFailed || this.#generation() !== before) this.#look();
    const next = this.#waits.endRound();
    if (this.#stop && next !== undefined) this.#adjustAt(Math.max(next, this.#pauseEnd));
  }

  // An error of one grant must not keep the others from growing.
  async #attempt(uid: string): Promise<Outcome> {
    try {
      return await this.#grow(uid);
    } catch (error) {
      publishError(this.#host!, 'apply', error);
      return 'failed';
    }
  }

  async #grow(uid: string): Promise<Outcome> {
    const host = this.#host!;
    const find = (state: ReturnType<typeof livingState>) =>
      elasticPods(state).find((each) => each.uid === uid);
    const state = livingState(host);
    const pod = find(state);
    if (!pod) return undefined;
    const input = this.#inputFor(pod, state);
    const grown = growthOf(input, pod, (each) => this.#waits.isAwaited(each));
    if (grown) return this.#resize(grown, uid);
    const growth = growthRequest(input, pod, (each) => this.#waits.mayAsk(each));
    if (!growth) return undefined;
    const request = native.randomUuid();
    try {
      this.#waits.addRefusals(await shrinkGrants(host, growth.shrinks, { for: request }));
      const open = withoutPlaceholder(livingState(host), request);
      const now = find(open);
      const larger =
        now && isSettled(now) ? elasticSize(this.#inputFor(now, open), now, growth.cpus) : undefined;
      return larger ? await this.#resize(larger.pod, uid, request) : 'failed';
    } finally {
      await giveBackRoom(host, request);
    }
  }

  // It grows within the mask that was chosen for this process.
  #inputFor(pod: PodAssignment, state: Assignments): ResizeFacts {
    const host = this.#host!;
    const input = resizeInput(host, state);
    return { ...input, within: maskOfGrant(pod, host.topology, state, input.present) };
  }

  async #resize(grown: PodAssignment, uid: string, room?: string): Promise<Outcome> {
    try {
      await moveGrant(this.#host!, uid, grown, { for: uid, room });
      return 'grown';
    } catch (error) {
      if (error instanceof NumalignError && LATER.includes(error.code)) return 'failed';
      throw error;
    }
  }
}

const newAdjuster = (store: Store) => new Adjuster(store);

const growsHere = ({ ledger }: Host, { elastic, owner }: PodAssignment): boolean =>
  elastic !== undefined && owner.kind === 'process' && ledger.owners.isOwn(owner);

/** Makes a grant grow by itself from now on, if it is elastic and belongs to this environment. */
export function followGrowth(host: Host, pod: PodAssignment): void {
  if (growsHere(host, pod)) host.ledger.registry.of(newAdjuster).follow(host);
}

/** The machine may have other CPUs than before, where grants of this environment may grow. */
export function followCpus(host: Host, pods: readonly PodAssignment[]): void {
  if (pods.some((pod) => growsHere(host, pod))) host.ledger.registry.of(newAdjuster).followCpus(host);
}
