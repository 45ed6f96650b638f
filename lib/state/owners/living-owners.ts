// LivingOwners: the owners that are known to live, as long as the kernel gives notice of each end.
// To look at one takes as long as half a decision.
import type { OwnerRecord } from '../../account/pod-assignment.js';
import type { NoticeEra } from './owner-watch.js';

/** The kernel's notices of the owners' files. */
export interface OwnerNotices {
  /** As {@link OwnerWatch.era}. */
  readonly era: NoticeEra | undefined;
}

/** What is asked of the owners' files. */
export interface OwnerLooks {
  /** Whether there is a notice of everything that happens to the files. */
  areNoticesComplete(): boolean;
  /** As {@link Owners.hasEnded}. */
  hasEnded(uuid: string): boolean;
  /** In seconds, of a clock that never goes back. */
  now(): number;
}

const NOBODY: readonly OwnerRecord[] = [];
// Where there are more doubts, it is looked with each further one whether the oldest is of an owner
// that has ended.
const MANY_DOUBTS = 256;
// An owner whose file was closed just before the notices began has let its lock go by then.
const SETTLE_S = 1;

/**
 * An owner that was seen alive, and whose file has had no notice since, still has its lock: the
 * kernel queues the notice that a file is closed before it lets the file's locks go, and closes the
 * file with the last copy of the descriptor, wherever that is. So what is known is as exact as a look.
 */
export class LivingOwners {
  readonly #notices: OwnerNotices;
  readonly #looks: OwnerLooks;
  // Of what is known here, and whether it may be known.
  #era: NoticeEra | undefined;
  #isCertain = false;
  readonly #living = new Set<string>();
  // Their end may come without another notice: files that were closed, whose locks the kernel lets go
  // just after the notice, and files that are not there.
  readonly #doubtful = new Set<string>();
  // All of them live.
  #all: readonly OwnerRecord[] | undefined;

  constructor(notices: OwnerNotices, looks: OwnerLooks) {
    this.#notices = notices;
    this.#looks = looks;
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
      if (this.#looks.now() < era.begin + SETTLE_S) return false;
      this.#all = undefined;
      this.#living.clear();
      this.#era = era;
      this.#isCertain = this.#looks.areNoticesComplete();
    }
    return this.#isCertain;
  }

  /** From now on an owner is looked at each time. */
  doubt(uuid: string): void {
    this.#forget(uuid);
    this.#doubtful.add(uuid);
    if (this.#doubtful.size <= MANY_DOUBTS) return;
    const [oldest] = this.#doubtful;
    this.#doubtful.delete(oldest!);
    // What has ended stays so.
    if (!this.#looks.hasEnded(oldest!)) this.#doubtful.add(oldest!);
  }

  /** The file of an owner is there, so that there will be a notice of its end. */
  settle(uuid: string): void {
    this.#forget(uuid);
    this.#doubtful.delete(uuid);
  }

  #forget(uuid: string): void {
    this.#all = undefined;
    this.#living.delete(uuid);
  }
}
