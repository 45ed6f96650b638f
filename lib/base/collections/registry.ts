// Registry: values that the rooms keep in memory for one owner, and as long as it lives: a state
// that this environment uses, or the environment itself.

/** Makes a value, and is its key in the registry. */
export type Make<Owner, T> = (owner: Owner) => T;

export class Registry<Owner> {
  readonly #values = new Map<Make<Owner, unknown>, unknown>();

  constructor(private readonly owner: Owner) {}

  /** The value of `make`, which only the first call makes. */
  of<T>(make: Make<Owner, T>): T {
    if (!this.#values.has(make)) this.#values.set(make, make(this.owner));
    return this.#values.get(make) as T;
  }

  /** True if all maps and sets of the registry are empty. */
  get isEmpty(): boolean {
    return [...this.#values.values()].every((value) => !(value as { size?: number }).size);
  }
}

/** The registry of this environment: the main thread, or a Worker. */
export const ENVIRONMENT = new Registry<void>(undefined);
