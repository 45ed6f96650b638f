// WeakValues: objects by name. A held object stays; any other stays while other code references it.
export class WeakValues<T extends object> {
  readonly #references = new Map<string, WeakRef<T>>();
  readonly #strong = new Set<T>();
  readonly #cleanup = new FinalizationRegistry<string>((name) => {
    // Another object may have taken the name.
    if (this.get(name) === undefined) this.#references.delete(name);
  });

  get(name: string): T | undefined {
    return this.#references.get(name)?.deref();
  }

  /** Replaces any other object of this name. */
  add(name: string, value: T): void {
    this.#references.set(name, new WeakRef(value));
    this.#cleanup.register(value, name);
  }

  hold(value: T): void {
    this.#strong.add(value);
  }

  letGo(value: T): void {
    this.#strong.delete(value);
  }
}
