// LayeredMap: an immutable map, of which another with a few changes costs what the changes are, and
// not what the map is.

// A copy of so many takes as long as a few look-ups do.
const MOST_CHANGES = 32;

export class LayeredMap<K, V> {
  // Shared by many maps.
  readonly #base: ReadonlyMap<K, V>;
  // Entries that differ from the base; undefined: deleted.
  readonly #changes: ReadonlyMap<K, V | undefined>;

  private constructor(base: ReadonlyMap<K, V>, changes: ReadonlyMap<K, V | undefined>) {
    this.#base = base;
    this.#changes = changes;
  }

  static from<K, V>(entries: Iterable<readonly [K, V]>): LayeredMap<K, V> {
    return new LayeredMap(new Map(entries), new Map());
  }

  get(key: K): V | undefined {
    return this.#changes.has(key) ? this.#changes.get(key) : this.#base.get(key);
  }

  /** The map with other values, in this order; undefined: without the key. */
  with(entries: Iterable<readonly [K, V | undefined]>): LayeredMap<K, V> {
    const changes = new Map(this.#changes);
    for (const [key, value] of entries) {
      // An entry that is added and deleted leaves nothing behind.
      if (value === this.#base.get(key)) changes.delete(key);
      else changes.set(key, value);
    }
    if (changes.size <= MOST_CHANGES) return new LayeredMap(this.#base, changes);
    const base = new Map(this.#base);
    for (const [key, value] of changes) {
      if (value === undefined) base.delete(key);
      else base.set(key, value);
    }
    return new LayeredMap(base, new Map());
  }
}
