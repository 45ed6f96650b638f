// Registry: what the rooms keep in memory for one owner, which it does not outlive: a state that
// this environment uses, or the environment itself.

/** Makes what is kept, and is the name under which it is. */
export type Make<Owner, T> = (owner: Owner) => T;

export class Registry<Owner> {
  readonly #owner: Owner;
  readonly #kept = new Map<Make<Owner, unknown>, unknown>();

  constructor(owner: Owner) {
    this.#owner = owner;
  }

  /** The result of the first call with `make`, the same for all callers. */
  of<T>(make: Make<Owner, T>): T {
    if (!this.#kept.has(make)) this.#kept.set(make, make(this.#owner));
    return this.#kept.get(make) as T;
  }

  /** True if nothing is in the maps and sets that are kept here. */
  get isEmpty(): boolean {
    return [...this.#kept.values()].every((kept) => !(kept as { size?: number }).size);
  }
}

/** The registry of this environment: the main thread, or a Worker. */
export const ENVIRONMENT = new Registry<void>(undefined);
