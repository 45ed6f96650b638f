// Random numbers from a seed: the same seed, the same choices.

export class Random {
  #state;

  /** `seed`: a whole number; further parts distinguish streams of one seed. */
  constructor(seed, ...parts) {
    this.#state = BigInt(seed);
    for (const part of parts) this.#state = BigInt.asUintN(64, (this.#state ^ this.bits()) + BigInt(part));
  }

  /** 64 random bits (splitmix64). */
  bits() {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let z = this.#state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  }

  /** A whole number below `limit`. */
  below(limit) {
    return Number(this.bits() % BigInt(limit));
  }

  chance(oneIn) {
    return this.below(oneIn) === 0;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** A name at random, by its weight. `weights`: by name, whole numbers. */
  weighted(weights) {
    const entries = Object.entries(weights);
    let left = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0));
    for (const [name, weight] of entries) {
      if (left < weight) return name;
      left -= weight;
    }
  }
}
