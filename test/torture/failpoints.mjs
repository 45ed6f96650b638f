// Failpoints: before, in the middle of and after every kind of step that agents took. The next one
// is the one with the fewest hits.

import { TREE } from './quiet-tree.mjs';

// A transaction takes most kinds of steps once, and few of them are part of a move.
const MOST_TIMES = 12;
const MOST_MOVES = 3;
const MOVE_STEP = /^(\w+) write .* (announce|refuse|begin|finish|keep)$/;
const WHENS = ['before', 'during', 'after'];
// Only a write can be half done; the kernel takes a write to its settings as a whole.
const hasHalf = (kind) => kind.startsWith('write ') && !kind.startsWith(`write ${TREE}/`);
const whensOf = (kind) => WHENS.filter((when) => when !== 'during' || hasHalf(kind));

export class Failpoints {
  #hits = new Map();
  /** Points that an agent was to die at and did not reach: many have no second occurrence. */
  #missed = new Set();
  #random;
  #oneInElse;

  /** `oneInElse`: the share of deaths outside the special steps. */
  constructor(random, oneInElse = 2) {
    this.#random = random;
    this.#oneInElse = oneInElse;
  }

  met(kind) {
    for (const when of whensOf(kind))
      this.#hits.set(`${when} ${kind}`, this.#hits.get(`${when} ${kind}`) ?? 0);
  }

  hit(kind, when) {
    const point = `${when} ${kind}`;
    this.#hits.set(point, (this.#hits.get(point) ?? 0) + 1);
  }

  miss({ kind, when }) {
    this.#missed.add(`${when} ${kind}`);
  }

  /** One of the points with the fewest hits: { nth, when, kind }. Undefined while none is known. */
  next() {
    const all = [...this.#hits];
    const special = all.filter(([point]) => point.includes(` ${TREE}/`) || MOVE_STEP.test(point));
    // If there are any, at least half of the deaths are in writes of kernel settings, or in moves.
    const isSpecial = special.length > 0 && !this.#random.chance(this.#oneInElse);
    const points = isSpecial ? special : all;
    const least = Math.min(...points.map(([, hits]) => hits));
    const rare = points.filter(([, hits]) => hits === least).map(([point]) => point);
    if (rare.length === 0) return undefined;
    const [, when, kind] = /^(\w+) (.*)$/.exec(this.#random.pick(rare));
    // The first occurrence belongs to the opening, the later ones to the work after it.
    const isFirst = this.#missed.has(`${when} ${kind}`) || this.#random.chance(3);
    const most = MOVE_STEP.test(`${when} ${kind}`) ? MOST_MOVES : MOST_TIMES;
    return { nth: isFirst ? 1 : 1 + this.#random.below(most), when, kind };
  }

  get counts() {
    const hits = [...this.#hits.values()];
    return {
      known: hits.length,
      hit: hits.filter((n) => n > 0).length,
      total: hits.reduce((a, b) => a + b, 0),
    };
  }

  /** Deaths by the step of a move, and by before, during or after its record. */
  get ofMoves() {
    const deaths = new Map();
    for (const [point, hits] of this.#hits) {
      const [, when, step] = MOVE_STEP.exec(point) ?? [];
      if (hits > 0 && step) deaths.set(`${when} ${step}`, (deaths.get(`${when} ${step}`) ?? 0) + hits);
    }
    return deaths;
  }

  get never() {
    return [...this.#hits].filter(([, hits]) => hits === 0).map(([point]) => point);
  }
}
