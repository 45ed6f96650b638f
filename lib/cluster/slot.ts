// Slot: the place of one worker, and of its successors on the same CPUs.
import type { Cluster as NodeCluster } from 'node:cluster';
import { isDeepStrictEqual } from 'node:util';
import { isNumalignError, NumalignError } from '../base/errors.js';
import { Backoff, retry } from '../base/notices/backoff.js';
import type { WorkerPlan } from './fork-options.js';
import { forkWorker, type GrantedWorker, type WorkerGrant } from './granted-worker.js';
import { WorkerLife } from './worker-life.js';

/** What slots belong to. */
export interface SlotOwner {
  readonly cluster: NodeCluster;
  /** What a worker will run on. @throws like {@link Manager.acquire} */
  grantFor(plan: WorkerPlan): Promise<WorkerGrant>;
  /** Called before the end of the slot's worker is emitted. */
  ending(slot: Slot): void;
  /** Called when the slot has no worker any more, and will not get one. */
  forget(slot: Slot): void;
}

interface Waiting {
  readonly resolve: (worker: GrantedWorker) => void;
  readonly reject: (error: NumalignError) => void;
}

export class Slot {
  #plan: WorkerPlan;
  // After lives in a row that were too short. The first is followed at once.
  readonly #backoff = new Backoff({ firstMs: 100, longestMs: 30_000, free: 1 });
  #granted: WorkerGrant | undefined;
  #worker: GrantedWorker | undefined;
  #life: WorkerLife | undefined;
  #starting: Promise<GrantedWorker> | undefined;
  // Starts the next worker.
  #timer: NodeJS.Timeout | undefined;
  // The promise of the next worker, for a listener of `exit` that has forked.
  #waiting: Waiting | undefined;
  // The release of its grant.
  #release: Promise<void> | undefined;
  // True if no worker follows this one.
  #isClosed = false;
  // True while its worker is being replaced.
  #isHeld = false;

  /** `granted`: if it is already available. */
  constructor(
    private readonly owner: SlotOwner,
    plan: WorkerPlan,
    granted?: WorkerGrant,
  ) {
    this.#plan = plan;
    this.#granted = granted;
  }

  /** The plan for its next worker. */
  get plan(): WorkerPlan {
    return this.#plan;
  }

  /** The worker that was forked last. */
  get worker(): GrantedWorker | undefined {
    return this.#worker;
  }

  /** Whether no worker follows this one. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The life of its worker. */
  get life(): WorkerLife | undefined {
    return this.#life;
  }

  /**
   * Forks a worker, but no successor if the slot is closed meanwhile. Returns the last worker.
   * @throws like {@link Cluster.fork}: then there is no worker, and the CPUs stay
   */
  start(): Promise<GrantedWorker> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start(): Promise<GrantedWorker> {
    this.#granted ??= await this.owner.grantFor(this.#plan);
    if (this.#worker && this.#isClosed) {
      this.#end();
      return this.#worker;
    }
    try {
      await forkWorker(this.owner.cluster, this.#plan.env, this.#granted, (worker) => {
        const life = new WorkerLife(
          worker,
          () => this.owner.ending(this),
          () => this.#onEnd(life),
        );
        this.#worker = worker;
        this.#life = life;
      });
      if (this.#life!.failure) throw await this.#life!.failure;
    } catch (error) {
      // The worker may have been forked: its end must not be handled.
      this.#life = undefined;
      if (!isNumalignError(error, 'ERR_GRANT_RELEASED')) throw error;
      // The grant was released while nothing ran on it, for example by its id.
      this.#granted = undefined;
      return this.#start();
    }
    const worker = this.#worker!;
    if (this.#isClosed) this.#life?.disconnect();
    this.#waiting?.resolve(worker);
    this.#waiting = undefined;
    return worker;
  }

  /**
   * The worker that follows, for a listener that forks while the end of this worker is emitted.
   * Undefined if none follows. If the plan differs, this slot closes, and another takes its place.
   */
  next(plan: WorkerPlan): Promise<GrantedWorker> | undefined {
    if (this.#isClosed || (!this.#isHeld && this.#life?.hasEndedByChoice)) return undefined;
    const requestOf = ({ request, isOptional }: WorkerPlan) => ({ request, isOptional });
    const comes = this.#isHeld || plan.mostShortLives > 0;
    if (!comes || !isDeepStrictEqual(requestOf(plan), requestOf(this.#plan))) {
      this.close();
      return undefined;
    }
    this.#plan = plan;
    const next = new Promise<GrantedWorker>((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
    // The end of a cluster is not an error unless a caller waits for a worker.
    next.catch(() => {});
    return next;
  }

  /**
   * Ends the worker, and forks another on its CPUs unless the slot was closed in the meantime.
   * Returns whether the worker had to be killed.
   * @throws like {@link start}; then it is tried again
   */
  async restart(deadlineMs: number): Promise<boolean> {
    // A worker that died may already have a successor.
    await this.#starting?.catch(() => {});
    this.#isHeld = true;
    this.#cancel();
    const isKilled = (await this.#life?.end(deadlineMs)) ?? false;
    this.#isHeld = false;
    if (this.#isClosed) this.#end();
    else {
      this.#leaveShared();
      await this.start().catch((error) => {
        this.#restart(0);
        throw error;
      });
    }
    return isKilled;
  }

  /** Lets no worker follow this one; its CPUs are released with it. */
  close(): void {
    this.#isClosed = true;
    this.#life?.ignoreErrors();
    if (this.#cancel()) this.#end();
  }

  /** Like {@link close}, and ends the worker. Returns whether it had to be killed. */
  async retire(deadlineMs: number): Promise<boolean> {
    this.close();
    const isKilled = (await this.#life?.end(deadlineMs)) ?? false;
    await this.#release;
    return isKilled;
  }

  /** Releases its grant. */
  giveBack(): void {
    const grant = this.#granted?.grant;
    this.#granted = undefined;
    if (grant) this.#release = retry(() => grant.release());
  }

  // Returns whether a next worker was pending.
  #cancel(): boolean {
    const isWaiting = this.#timer !== undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return isWaiting;
  }

  // There may be CPUs for the next worker.
  #leaveShared(): void {
    if (!this.#granted?.grant) this.#granted = undefined;
  }

  #onEnd(life: WorkerLife): void {
    if (this.#isHeld || life !== this.#life) return;
    if (life.hasEndedByChoice) this.#end();
    else this.#restart(life.ageMs);
  }

  // Starts the successor of a worker that has lived for `lifeMs`, unless the slot is closed.
  #restart(lifeMs: number): void {
    if (this.#isClosed) {
      this.#end();
      return;
    }
    this.#leaveShared();
    const isSteady = lifeMs >= STEADY_MS;
    if (isSteady) this.#backoff.reset();
    const waitMs = isSteady ? 0 : this.#backoff.next();
    const shortLives = this.#backoff.failures;
    if (shortLives >= this.#plan.mostShortLives) {
      if (this.#plan.mostShortLives > 0)
        warn(`worker ${this.#worker!.id} is not forked again, after ${shortLives} short lives`);
      this.#end();
    } else if (waitMs === 0) void this.#respawn();
    // Keeps the process alive, as the worker would.
    else this.#timer = setTimeout(() => this.#respawn(), waitMs);
  }

  async #respawn(): Promise<void> {
    this.#timer = undefined;
    try {
      await this.start();
    } catch (error) {
      const isLast = isNumalignError(error, 'ERR_MANAGER_CLOSED');
      const what = isLast ? 'is not' : 'cannot be';
      warn(`worker ${this.#worker!.id} ${what} forked again: ${(error as Error).message}`);
      if (isLast) this.#end();
      else this.#restart(0);
    }
  }

  #end(): void {
    this.owner.forget(this);
    this.giveBack();
    const message = `no worker comes after worker ${this.#worker!.id}: its place was given up`;
    this.#waiting?.reject(new NumalignError('ERR_WORKER_START', message, { value: this.#worker!.id }));
    this.#waiting = undefined;
  }
}

/** A worker that has run this long has started well. */
const STEADY_MS = 10_000;

const warn = (text: string) => process.emitWarning(text, 'NumalignWarning');
