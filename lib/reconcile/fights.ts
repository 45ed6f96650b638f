// Fights: differences that another program causes again as often as they are repaired.
const MOST_REPAIRS = 2;
// How long something must be right before its repairs are forgotten.
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

  /** Records a difference. Returns `repair`, or `lost` after too many repairs. */
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

  /** Ends a round that has found exactly these differences. */
  settle(different: ReadonlySet<string>): void {
    for (const [key, fight] of this.#fights) {
      if (different.has(key)) continue;
      fight.right++;
      const isOver = fight.right >= ROUNDS_RIGHT && performance.now() - fight.lastRepair >= RIGHT_MS;
      if (fight.isContested || isOver) this.#fights.delete(key);
    }
  }
}
