// LivingOwners: caches which owners live while the kernel reports each end. Checking one owner
// takes as long as half a decision.
import type { OwnerRecord } from '../../account/pod-assignment.js';
import type { NoticeEra } from './owner-watch.js';

/** The kernel's notices about the owners' files. */
export interface OwnerNotices {
  /** See {@link OwnerWatch.era}. */
  readonly era: NoticeEra | undefined;
}

/** Checks of the owners' files. */
export interface OwnerLooks {
  /** True if the kernel reports every change of the files. */
  areNoticesComplete(): boolean;
  /** See {@link Owners.hasEnded}. */
  hasEnded(uuid: string): boolean;
  /** Seconds of a monotonic clock. */
  now(): number;
}

const NO_OWNERS: readonly OwnerRecord[] = [];
// Above this number, each further doubtful owner makes numalign check whether the oldest has ended.
const MANY_DOUBTS = 256;
/**
 * After this time an owner whose file was closed just before the watch began has released its lock.
 */
export const SETTLE_S = 1;

/**
 * An owner that lived at a check, and whose file had no notice since, still has its lock. The
 * kernel queues the close event before it releases the file's locks, and closes the file with the
 * last copy of the descriptor in any process. So the cache is as exact as a check.
 */
export class LivingOwners {
  // The era of the cached data, and whether it may be cached.
  #era: NoticeEra | undefined;
  #isCertain = false;
  readonly #living = new Set<string>();
  // Owners that may end without another notice: their files were closed, and the kernel releases
  // the locks just after that notice; or their files are missing.
  readonly #doubtful = new Set<string>();
  // The last list of which all owners lived.
  #all: readonly OwnerRecord[] | undefined;
  // For cgroups that are checked in turns: where the next turn begins, and the uuids found dead.
  #turn = 0;
  readonly #endedUuids = new Set<string>();

  constructor(
    private readonly notices: OwnerNotices,
    private readonly looks: OwnerLooks,
  ) {}

  /**
   * Returns the dead among some owners. `isAlive` checks one. `mostCgroups`: how many cgroups to
   * check, in turns; those found dead before are checked besides. REQUIRES: with `mostCgroups`,
   * `owners` are all owners.
   */
  deadAmong(
    owners: readonly OwnerRecord[],
    isAlive: (owner: OwnerRecord) => boolean,
    mostCgroups = Number.POSITIVE_INFINITY,
  ): readonly OwnerRecord[] {
    const canKnow = this.#follow();
    if (canKnow && this.#all === owners) return NO_OWNERS;
    const unknown = canKnow ? owners.filter(({ uuid }) => !this.#living.has(uuid)) : owners;
    const candidates = this.#inTurn(unknown, mostCgroups);
    const alive = candidates.filter(isAlive);
    const dead =
      alive.length === candidates.length ? NO_OWNERS : candidates.filter((owner) => !alive.includes(owner));
    for (const { kind, uuid } of dead) if (kind === 'cgroup') this.#endedUuids.add(uuid);
    if (!canKnow) return dead;
    // The kernel reports no ends of processes in a cgroup.
    const certain = alive.filter(({ kind, uuid }) => kind === 'process' && !this.#doubtful.has(uuid));
    for (const { uuid } of certain) this.#living.add(uuid);
    if (certain.length === unknown.length) this.#all = owners;
    return dead;
  }

  #inTurn(owners: readonly OwnerRecord[], most: number): readonly OwnerRecord[] {
    const cgroups = owners.filter(({ kind }) => kind === 'cgroup');
    if (cgroups.length <= most) return owners;
    // Forgets owners that are off the record.
    for (const uuid of this.#endedUuids) {
      if (!cgroups.some((owner) => owner.uuid === uuid)) this.#endedUuids.delete(uuid);
    }
    const begin = this.#turn % cgroups.length;
    this.#turn = begin + most;
    const turn = new Set([...cgroups, ...cgroups].slice(begin, begin + most));
    const isDue = (owner: OwnerRecord) =>
      owner.kind !== 'cgroup' || turn.has(owner) || this.#endedUuids.has(owner.uuid);
    return owners.filter(isDue);
  }

  #follow(): boolean {
    const { era } = this.notices;
    if (era === undefined) return false;
    if (era !== this.#era) {
      if (this.looks.now() < era.begin + SETTLE_S) return false;
      this.#all = undefined;
      this.#living.clear();
      this.#era = era;
      this.#isCertain = this.looks.areNoticesComplete();
    }
    return this.#isCertain;
  }

  /** Checks this owner each time from now on. */
  doubt(uuid: string): void {
    this.#forget(uuid);
    this.#doubtful.add(uuid);
    if (this.#doubtful.size <= MANY_DOUBTS) return;
    const [oldest] = this.#doubtful;
    this.#doubtful.delete(oldest!);
    // A dead owner stays dead.
    if (!this.looks.hasEnded(oldest!)) this.#doubtful.add(oldest!);
  }

  /** The owner's file exists, so its end will be reported. */
  settle(uuid: string): void {
    this.#forget(uuid);
    this.#doubtful.delete(uuid);
  }

  #forget(uuid: string): void {
    this.#all = undefined;
    this.#living.delete(uuid);
  }
}
