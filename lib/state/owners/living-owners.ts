// LivingOwners: the owners that are known to live, as long as the kernel tells of the end of each.
// To look at one takes as long as half a decision.
import type { OwnerRecord } from '../../account/pod-assignment.js';

/** What the kernel tells of the owners' files. */
export interface OwnerNotices {
  /** As {@link OwnerWatch.era}. */
  readonly era: object | undefined;
}

const NOBODY: readonly OwnerRecord[] = [];

export class LivingOwners {
  readonly #notices: OwnerNotices;
  readonly #areComplete: () => boolean;
  // Of what is known here, and whether its notices are complete.
  #era: object | undefined;
  #isCertain = false;
  readonly #living = new Set<string>();
  // Those whose files were closed: the kernel says so just before it lets the lock go.
  readonly #doubtful = new Set<string>();
  // All of them live.
  #all: readonly OwnerRecord[] | undefined;

  /** `areComplete`: whether the notices tell of everything that happens to the files. */
  constructor(notices: OwnerNotices, areComplete: () => boolean) {
    this.#notices = notices;
    this.#areComplete = areComplete;
  }

  /** The dead among some owners. `isAlive` looks at one. */
  deadAmong(
    owners: readonly OwnerRecord[],
    isAlive: (owner: OwnerRecord) => boolean,
  ): readonly OwnerRecord[] {
    if (!this.#follow()) return owners.filter((owner) => !isAlive(owner));
    if (this.#all === owners) return NOBODY;
    const dead = owners.filter(({ uuid }) => !this.#living.has(uuid)).filter((owner) => !isAlive(owner));
    for (const owner of owners) {
      // Of the processes in a cgroup nothing is told here.
      const isTold = owner.kind === 'process' && !this.#doubtful.has(owner.uuid);
      if (isTold && !dead.includes(owner)) this.#living.add(owner.uuid);
    }
    this.#all = owners.every(({ uuid }) => this.#living.has(uuid)) ? owners : undefined;
    return dead;
  }

  #follow(): boolean {
    const { era } = this.#notices;
    if (era === undefined) return false;
    if (era !== this.#era) {
      this.forget();
      this.#doubtful.clear();
      this.#era = era;
      this.#isCertain = this.#areComplete();
    }
    return this.#isCertain;
  }

  /** The file of an owner was closed. */
  doubt(uuid: string): void {
    this.#doubtful.add(uuid);
    this.forget(uuid);
  }

  /** Something has happened to the file of an owner, or perhaps to all. */
  forget(uuid?: string): void {
    this.#all = undefined;
    if (uuid === undefined) this.#living.clear();
    else this.#living.delete(uuid);
  }
}
