// Rounds: work that takes time and is requested repeatedly, but never runs twice at once.

/** Runs `work` for each call of {@link ask}; all calls during a round cause one more round. */
export class Rounds {
  readonly #work: () => Promise<void>;
  #current: Promise<void> | undefined;
  #isPending = false;
  #isOver = false;

  /** `work` must not reject. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** Resolves once a round has ended that began after the call. */
  ask(): Promise<void> {
    if (this.#current) this.#isPending = true;
    this.#current ??= this.#run();
    return this.#current;
  }

  async #run(): Promise<void> {
    do {
      this.#isPending = false;
      // `work` may call {@link ask} before it waits for anything.
      await null;
      if (!this.#isOver) await this.#work();
    } while (this.#isPending && !this.#isOver);
    this.#current = undefined;
  }

  /** Starts no further round; resolves once the current one has ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#current;
  }
}
