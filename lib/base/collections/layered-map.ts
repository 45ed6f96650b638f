// LayeredMap: an immutable map. A version with a few changes costs as much as the changes, not as
// much as the map.

// Copying this many entries takes as long as a few look-ups.
const MOST_CHANGES = 32;

export class LayeredMap<K, V> {
  // Shared by many maps.
  readonly #base: ReadonlyMap<K, V>;
  // Entries that differ from the base; undefined if deleted.
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

  /** A map with these entries set, in this order; an undefined value deletes its key. */
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
