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
/** An owner whose file was closed just before the notices began has let its lock go by then. */
export const SETTLE_S = 1;

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
  // Of cgroups, where not all are looked at: the first of the next look, and those that were seen dead.
  #turn = 0;
  readonly #ended = new Set<string>();

  constructor(notices: OwnerNotices, looks: OwnerLooks) {
    this.#notices = notices;
    this.#looks = looks;
  }

  /**
   * The dead among some owners. `isAlive` looks at one. `mostCgroups`: how many cgroups are looked at,
   * other ones each time, beside those that were seen dead before; REQUIRES: `owners` are all of them.
   */
  deadAmong(
    owners: readonly OwnerRecord[],
    isAlive: (owner: OwnerRecord) => boolean,
    mostCgroups = Number.POSITIVE_INFINITY,
  ): readonly OwnerRecord[] {
    const canKnow = this.#follow();
    if (canKnow && this.#all === owners) return NOBODY;
    const unknown = canKnow ? owners.filter(({ uuid }) => !this.#living.has(uuid)) : owners;
    const looked = this.#inTurn(unknown, mostCgroups);
    const alive = looked.filter(isAlive);
    const dead = alive.length === looked.length ? NOBODY : looked.filter((owner) => !alive.includes(owner));
    for (const { kind, uuid } of dead) if (kind === 'cgroup') this.#ended.add(uuid);
    if (!canKnow) return dead;
    // Of the processes in a cgroup there is no notice.
    const certain = alive.filter(({ kind, uuid }) => kind === 'process' && !this.#doubtful.has(uuid));
    for (const { uuid } of certain) this.#living.add(uuid);
    if (certain.length === unknown.length) this.#all = owners;
    return dead;
  }

  #inTurn(owners: readonly OwnerRecord[], most: number): readonly OwnerRecord[] {
    const cgroups = owners.filter(({ kind }) => kind === 'cgroup');
    if (cgroups.length <= most) return owners;
    // Off the record.
    for (const uuid of this.#ended) {
      if (!cgroups.some((owner) => owner.uuid === uuid)) this.#ended.delete(uuid);
    }
    const begin = this.#turn % cgroups.length;
    this.#turn = begin + most;
    const turn = new Set([...cgroups, ...cgroups].slice(begin, begin + most));
    const isDue = (owner: OwnerRecord) =>
      owner.kind !== 'cgroup' || turn.has(owner) || this.#ended.has(owner.uuid);
    return owners.filter(isDue);
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
