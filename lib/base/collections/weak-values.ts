// WeakValues: objects by name. An object that is held stays; any other stays as long as code elsewhere
// else has it.
export class WeakValues<T extends object> {
  readonly #known = new Map<string, WeakRef<T>>();
  readonly #held = new Set<T>();
  readonly #collected = new FinalizationRegistry<string>((name) => {
    // Another may have come under the name.
    if (this.get(name) === undefined) this.#known.delete(name);
  });

  get(name: string): T | undefined {
    return this.#known.get(name)?.deref();
  }

  /** In place of any other of that name. */
  add(name: string, value: T): void {
    this.#known.set(name, new WeakRef(value));
    this.#collected.register(value, name);
  }

  hold(value: T): void {
    this.#held.add(value);
  }

  letGo(value: T): void {
    this.#held.delete(value);
  }
}
