// Fights: things that somebody else changes as often as they are repaired.
const MOST_REPAIRS = 2;
// How long something must have been right until its repairs are forgotten.
const ROUNDS_RIGHT = 3;
const RIGHT_MS = 60_000;

interface Fight {
  repairs: number;
  right: number;
  lastRepair: number;
  isContested: boolean;
}

export class Fights {
  readonly #fights = new Map<string, Fight>();

  get contested(): number {
    return [...this.#fights.values()].filter(({ isContested }) => isContested).length;
  }

  isContested(key: string): boolean {
    return this.#fights.get(key)?.isContested ?? false;
  }

  /** It is different: `repair`; or, once, `lost`: it was repaired often enough. */
  meet(key: string): 'repair' | 'lost' {
    const fight = this.#fights.get(key) ?? { repairs: 0, right: 0, lastRepair: 0, isContested: false };
    this.#fights.set(key, fight);
    fight.right = 0;
    if (fight.repairs >= MOST_REPAIRS) {
      fight.isContested = true;
      return 'lost';
    }
    fight.repairs++;
    fight.lastRepair = performance.now();
    return 'repair';
  }

  /** A round has found these different, and everything else as it should be. */
  settle(different: ReadonlySet<string>): void {
    for (const [key, fight] of this.#fights) {
      if (different.has(key)) continue;
      fight.right++;
      const isOver = fight.right >= ROUNDS_RIGHT && performance.now() - fight.lastRepair >= RIGHT_MS;
      if (fight.isContested || isOver) this.#fights.delete(key);
    }
  }
}
