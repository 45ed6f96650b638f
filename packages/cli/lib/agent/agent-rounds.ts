// The rounds of `numalign agent`: when its manager reconciles.
const ROUND_MS = 10_000;
// Spreads the rounds of agents that started together.
const JITTER = 0.1;

/** The part of a manager that rounds use. */
export interface Reconciling {
  reconcile(): Promise<unknown>;
}

/** Lets the manager reconcile after every change and every 10 seconds, one round at a time. */
export class Rounds {
  readonly #manager: Reconciling;
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;
  #isDue = false;
  #isStopped = false;
  /** The error of the last round; undefined if it succeeded. */
  lastFailure: unknown;

  constructor(manager: Reconciling) {
    this.#manager = manager;
  }

  run(): void {
    this.#isDue = true;
    if (this.#isRunning || this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#isRunning = true;
    void this.#runAll();
  }

  async #runAll(): Promise<void> {
    while (this.#isDue && !this.#isStopped) {
      this.#isDue = false;
      try {
        await this.#manager.reconcile();
        this.lastFailure = undefined;
      } catch (error) {
        this.lastFailure = error;
      }
    }
    this.#isRunning = false;
    const wait = ROUND_MS * (1 + JITTER * (2 * Math.random() - 1));
    if (!this.#isStopped) this.#timer = setTimeout(() => this.run(), wait);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }
}
