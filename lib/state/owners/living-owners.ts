// LivingOwners: the owners that are known to live, as long as the kernel gives notice of each end.
// To look at one takes as long as half a decision.
import type { OwnerRecord } from '../../account/pod-assignment.js';

/** The kernel's notices of the owners' files. */
export interface OwnerNotices {
  /** As {@link OwnerWatch.era}. */
  readonly era: object | undefined;
}

const NOBODY: readonly OwnerRecord[] = [];
// The oldest doubts are of owners that have ended long ago.
const MOST_DOUBTS = 256;

export class LivingOwners {
  readonly #notices: OwnerNotices;
  readonly #areComplete: () => boolean;
  // Of what is known here, and whether its notices are complete.
  #era: object | undefined;
  #isCertain = false;
  readonly #living = new Set<string>();
  // Their end may come without another notice: files that were closed, whose locks the kernel lets go
  // just after the notice, and files that are not there.
  readonly #doubtful = new Set<string>();
  // All of them live.
  #all: readonly OwnerRecord[] | undefined;

  /** `areComplete`: whether there is a notice of everything that happens to the files. */
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
    const unknown = owners.filter(({ uuid }) => !this.#living.has(uuid));
    const alive = unknown.filter(isAlive);
    // Of the processes in a cgroup there is no notice.
    const certain = alive.filter(({ kind, uuid }) => kind === 'process' && !this.#doubtful.has(uuid));
    for (const { uuid } of certain) this.#living.add(uuid);
    if (certain.length === unknown.length) this.#all = owners;
    return alive.length === unknown.length ? NOBODY : unknown.filter((owner) => !alive.includes(owner));
  }

  #follow(): boolean {
    const { era } = this.#notices;
    if (era === undefined) return false;
    if (era !== this.#era) {
      this.forget();
      this.#era = era;
      this.#isCertain = this.#areComplete();
    }
    return this.#isCertain;
  }

  /** From now on an owner is looked at each time. */
  doubt(uuid: string): void {
    this.#forget(uuid);
    this.#doubtful.add(uuid);
    const [oldest] = this.#doubtful;
    if (this.#doubtful.size > MOST_DOUBTS) this.#doubtful.delete(oldest!);
  }

  /** The file of an owner is there, so that there will be a notice of its end. */
  settle(uuid: string): void {
    this.#forget(uuid);
    this.#doubtful.delete(uuid);
  }

  /** All are looked at once more. */
  forget(): void {
    this.#all = undefined;
    this.#living.clear();
  }

  #forget(uuid: string): void {
    this.#all = undefined;
    this.#living.delete(uuid);
  }
}
