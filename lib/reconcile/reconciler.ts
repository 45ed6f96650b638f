// Reconciler: compares the machine with the record, and repairs it. Each state has one per
// environment, for all managers. It looks without the lock and writes nothing. Only if something
// differs, it takes the lock, looks again, and repairs.
import { setTimeout as pause } from 'node:timers/promises';
import type { Assignments } from '../account/assignments.js';
import { runningCpus } from '../account/pod-holdings.js';
import { publish, traced } from '../admission/diagnostics.js';
import { substituteLostCpus } from '../admission/grants/substitute.js';
import type { Host } from '../admission/host.js';
import { unlessRefused } from '../base/errors.js';
import {
  type Comparison,
  type Drift,
  type Hotplug,
  type ReconcileReport,
  type RepairableDrift,
  together,
} from '../enforcement/drift.js';
import type { Placement } from '../input/placement.js';
import { refreshHost } from '../machine/topology-refresh.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import type { Store } from '../state/store.js';
import { threadsOf } from '../threads/followers.js';
import { watchCpus } from './cpu-events.js';
import { compareLevels } from './fallen-levels.js';
import { Fights } from './fights.js';
import { compareQuiet } from './quiet-settings.js';
import { type Repair, repair } from './repair.js';
import { compareThreads } from './thread-drift.js';

/** What reconciling needs from a manager. */
export interface Reconciling {
  readonly host: Host;
  /** Used if the record does not say how a grant was placed. */
  readonly placement: Placement;
  /** 0: only on request. */
  readonly periodMs: number;
  /** A background round has looked; what it has looked at may have changed. */
  looked(): void;
  drifted(drift: Drift): void;
  hotplugged(hotplug: Hotplug): void;
  failed(error: Error): void;
}

// Keeps processes that started together from running rounds together.
const JITTER = 0.1;
// The process that gives CPUs back opens them to others after the commit, in a separate step. Until
// then this is not a drift.
const FRESH_MS = 1000;
// Many commits in a row, or many CPUs that go offline, cause only one round.
const AFTER_COMMIT_MS = FRESH_MS;
const AFTER_HOTPLUG_MS = 100;
const SETTLE_MS = 200;
const MOST_LOOKS = 6;

const NOTHING_DONE: ReconcileReport = Object.freeze({
  checked: 0,
  repaired: 0,
  contested: 0,
  writes: 0,
  drifts: Object.freeze([]),
  hotplug: Object.freeze([]),
});

export class Reconciler {
  readonly #clients = new Set<Reconciling>();
  readonly #fights = new Fights();
  #running: Promise<ReconcileReport> | undefined;
  #next: Promise<ReconcileReport> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;
  #endCpus: (() => void) | undefined;
  // The watch on the state; none while a round is pending.
  #endState: (() => void) | undefined;
  #generation: number | undefined;

  private constructor(private readonly store: Store) {}

  static readonly #for = (store: Store) => new Reconciler(store);

  static of(store: Store): Reconciler {
    return store.registry.of(Reconciler.#for);
  }

  /** Attaches a client until the returned function is called. Does not keep the process alive. */
  attach(client: Reconciling): () => void {
    this.#clients.add(client);
    this.#schedule();
    return () => {
      this.#clients.delete(client);
      this.#schedule();
    };
  }

  get #background(): Reconciling | undefined {
    const periodic = [...this.#clients].filter(({ periodMs }) => periodMs > 0);
    return periodic.sort((a, b) => a.periodMs - b.periodMs)[0];
  }

  #schedule(): void {
    if (this.#timer) clearTimeout(this.#timer);
    const client = this.#background;
    if (!client) {
      clearTimeout(this.#soon);
      this.#soon = undefined;
      this.#endCpus?.();
      this.#endCpus = undefined;
      this.#unwatchState();
      return;
    }
    const wait = Math.min(client.periodMs * (1 + JITTER * (2 * Math.random() - 1)), 2 ** 31 - 1);
    this.#timer = setTimeout(() => this.#runQuietly(), wait).unref();
    this.#endCpus ??= watchCpus(() => this.#runIn(AFTER_HOTPLUG_MS));
    if (!this.#soon) this.#watchState();
  }

  #watchState(): void {
    this.#endState ??= this.store.watch(() => this.#look(), { isQuiet: true });
  }

  #unwatchState(): void {
    this.#endState?.();
    this.#endState = undefined;
  }

  // The state has a new commit, or possibly one. Commits before the next round do not wake the
  // process again.
  #look(): void {
    if (this.#soon || this.#readGeneration() === this.#generation) return;
    this.#unwatchState();
    this.#runIn(AFTER_COMMIT_MS);
  }

  #runIn(wait: number): void {
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.#runQuietly();
    }, wait).unref();
  }

  #readGeneration(): number | undefined {
    return unlessRefused(() => this.store.read()?.generation);
  }

  #runQuietly(): void {
    const client = this.#background;
    if (!client) return;
    this.reconcile(client)
      .catch((error) => {
        for (const each of this.#clients) each.failed(error);
      })
      .finally(() => {
        for (const each of this.#clients) each.looked();
        this.#schedule();
      });
  }

  /** Runs a round that begins after this call. @throws ERR_LOCK_TIMEOUT, ERR_STATE_*, ERR_CGROUP */
  reconcile(client: Reconciling): Promise<ReconcileReport> {
    if (this.#next) return this.#next;
    if (!this.#running) return this.#start(client);
    const begin = () => {
      this.#next = undefined;
      return this.#start(client);
    };
    this.#next = this.#running.then(begin, begin);
    return this.#next;
  }

  #start(client: Reconciling): Promise<ReconcileReport> {
    const round = traced(
      'reconcile',
      client.host,
      () => this.#round(client),
      ({ value }) => {
        const { checked, repaired, contested, writes } = value ?? NOTHING_DONE;
        return { checked, repaired, contested, writes };
      },
    );
    this.#running = round;
    const endRound = () => {
      if (this.#running === round) this.#running = undefined;
    };
    round.then(endRound, endRound);
    return round;
  }

  async #round(client: Reconciling): Promise<ReconcileReport> {
    const { host } = client;
    if (host.topology.isSimulated) return NOTHING_DONE;
    // The watch starts first, so that no commit is missed.
    if (this.#background) this.#watchState();
    this.#generation = this.#readGeneration();
    for (const each of new Set([client, ...this.#clients])) await refreshHost(each.host);
    const hotplug = await this.#substitute(client);
    const look = async () => {
      const checkpoint = this.store.read();
      return checkpoint && !checkpoint.refusal
        ? { ...checkpoint, ...(await this.#compare(host, checkpoint.assignments)) }
        : undefined;
    };
    let comparison = await look();
    for (let looks = 1; comparison && comparison.drifts.length > 0 && ageOf(comparison) < FRESH_MS; looks++) {
      if (looks === MOST_LOOKS) break;
      await pause(SETTLE_MS);
      // The client has been closed in the meantime.
      if (!this.#clients.has(client)) return { ...NOTHING_DONE, hotplug };
      comparison = await look();
    }
    if (!comparison) return { ...NOTHING_DONE, hotplug };
    const isGivenUp = ({ key }: RepairableDrift) => this.#fights.isContested(key);
    const outcome: Repair = comparison.drifts.every(isGivenUp)
      ? { different: comparison.drifts, drifts: [], writes: 0 }
      : await repair(host, this.#fights, (state) => this.#compare(host, state));
    if (outcome.isPostponed) this.#generation = undefined;
    this.#fights.settle(new Set(outcome.different.map(({ key }) => key)));
    for (const drift of outcome.drifts) this.#report(client, drift);
    return Object.freeze({
      checked: comparison.checked,
      repaired: outcome.drifts.filter(({ repaired }) => repaired).length,
      contested: this.#fights.contested,
      writes: outcome.writes + hotplug.length,
      drifts: Object.freeze(outcome.drifts),
      hotplug: Object.freeze(hotplug),
    });
  }

  #report({ host }: Reconciling, drift: Drift): void {
    const { kind, uid, what, repaired } = drift;
    publish('drift', host, () => ({ kind, uid, what, repaired }));
    for (const each of this.#clients) each.drifted(drift);
  }

  // Only for grants of this process. Each change is reported once.
  async #substitute({ host, placement }: Reconciling): Promise<Hotplug[]> {
    const { owners } = this.store;
    const hotplugs: Hotplug[] = [];
    for (const pod of this.store.read()?.assignments.pods ?? []) {
      if (pod.owner.kind !== 'process' || !owners.isOwn(pod.owner)) continue;
      const result = await substituteLostCpus(host, pod, placement, threadsOf(this.store, pod.uid, pod));
      if (!result) continue;
      const { lost, substitutes, revoked, returned, isParked, error } = result;
      const cpus = runningCpus(result.pod).difference(revoked);
      const hotplug = Object.freeze({
        uid: pod.uid,
        cpus,
        lost,
        substitutes,
        revoked,
        returned,
        isParked,
        error,
      });
      hotplugs.push(hotplug);
      for (const each of this.#clients) each.hotplugged(hotplug);
    }
    return hotplugs;
  }

  async #compare(host: Host, state: Assignments): Promise<Comparison> {
    const isGivenUp = (key: string) => this.#fights.isContested(key);
    return together([
      compareThreads(host, state, isGivenUp),
      host.enforcer.compare(state, isGivenUp),
      await compareQuiet(host, state),
      compareLevels(host, state),
    ]);
  }
}

// By the wall clock: if it is set, there is one wait too many or too few.
const ageOf = ({ writtenAt }: Pick<Checkpoint, 'writtenAt'>) => Math.abs(Date.now() - Date.parse(writtenAt));
