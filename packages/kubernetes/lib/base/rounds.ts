// Rounds: work that takes time and is asked for again and again: never twice at once.

/** Runs `work` for every call of {@link ask}; calls during a round are one more round after it. */
export class Rounds {
  readonly #work: () => Promise<void>;
  #current: Promise<void> | undefined;
  #isAskedAgain = false;
  #isOver = false;

  /** `work` must not reject. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** Resolves once a round is over that began after the call. */
  ask(): Promise<void> {
    if (this.#current) this.#isAskedAgain = true;
    this.#current ??= this.#run();
    return this.#current;
  }

  async #run(): Promise<void> {
    do {
      this.#isAskedAgain = false;
      // `work` may ask before it waits for anything.
      await null;
      if (!this.#isOver) await this.#work();
    } while (this.#isAskedAgain && !this.#isOver);
    this.#current = undefined;
  }

  /** Nothing begins any more; resolves once the current round has ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#current;
  }
}
