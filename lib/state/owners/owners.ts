// Owners: the owner of each grant, and whether it lives. A process owns through a locked file in
// owners/; the kernel drops the lock when the process dies, in any pid namespace. A cgroup owns
// while it has a process, a persistent owner until its grant is released.
import type { Assignments } from '../../account/assignments.js';
import { mortalOwners, podsOf, podsOfDead } from '../../account/owners-of-pods.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { podListChanges, podsBefore } from '../../account/pod-list-changes.js';
import { unlessRefused } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { RequestedOwner } from '../../input/requests/owner.js';
import { type FoundOwners, findOwners, isLocked, isOwnerAlive, OWNER_NAME } from '../files/owner-claims.js';
import { type LocksOfFolder, locksOf } from '../files/owner-locks.js';
import { OwnerNames } from '../files/owner-names.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { decodeOwnerFile } from '../format/owner-file.js';
import { LivingOwners, type OwnerNotices } from './living-owners.js';
import { OwnClaims } from './own-claims.js';
import { OwnerFiles } from './owner-files.js';
import { type Header, newOwner } from './owner-record.js';

const NONE: readonly PodAssignment[] = [];
const NO_LOCKS = { has: () => false, mayHave: () => false };

// How often a transaction checks all owners' files.
const SWEEP_PERIOD_S = 1;

/**
 * The owners of one state folder, with this environment. Every member outside {@link OwnerLookup}
 * REQUIRES the state's lock.
 */
export class Owners {
  /** This environment as an owner. */
  readonly own: OwnClaims;
  readonly #others: OwnerFiles;
  readonly #names: OwnerNames;
  #living: LivingOwners | undefined;
  #bootId: string;
  #header: Header | undefined;
  // True if the outcome of a commit is unknown: its claim may be of no state.
  #isUnsettled = false;
  #nextSweep = 0;
  // See FoundOwners.names; of this transaction.
  #found: readonly string[] | undefined;
  // Counts this environment's transactions.
  #turn = 0;
  // As they are in this transaction, or were at a look since it began.
  #turnLocks: LocksOfFolder;

  /** `folder`: owners/ of the state folder at `path`. `notes`: see {@link OwnerNames}. */
  constructor(
    private readonly folder: NativeFolder,
    notes: NativeFolder,
    private readonly path: string,
    bootId: string,
  ) {
    this.#bootId = bootId;
    this.#names = new OwnerNames(folder, notes, path);
    this.own = new OwnClaims(folder, path, this.#names.change);
    this.#others = new OwnerFiles(folder, this.#names.change);
    this.#turnLocks = this.#locks;
  }

  // As they are at the first question. Who does not hold the lock of its file has none if all files
  // are there.
  get #locks(): LocksOfFolder {
    const locks = locksOf(this.folder, this.path);
    return () => (this.#names.areKept() ? NO_LOCKS : locks());
  }

  /** Caches which owners live while `notices` report each end. */
  hear(notices: OwnerNotices): LivingOwners {
    this.#living = new LivingOwners(notices, {
      areNoticesComplete: () => this.folder.isLocal() && this.folder.isCurrent(),
      hasEnded: (uuid) => this.hasEnded(uuid),
      // performance.now() would make Node load another module.
      now: () => process.uptime(),
    });
    return this.#living;
  }

  /** The other users of the state have another id for this boot. */
  renameBoot(bootId: string): void {
    this.#bootId = bootId;
  }

  /**
   * The record of an owner: this environment's record, or a new one.
   * @throws ERR_INVALID_OPTION for a cgroup that does not exist or is empty, ERR_SYSCALL if the
   *   owner's file cannot be made
   */
  recordFor(owner: RequestedOwner): OwnerRecord {
    return owner === 'process' ? this.own.record(this.#header!) : newOwner(owner, native.randomUuid());
  }

  /** True if the process (or Worker) with this file has ended. False if it cannot be checked. */
  hasEnded(uuid: string, locks = this.#locks): boolean {
    return this.#isEnded(uuid, () => !this.isProcessAlive(uuid, locks));
  }

  /**
   * Like {@link hasEnded}, by the file's own lock alone: also true if other programs replaced the
   * file of a living owner. It does not read /proc/locks, which stops all locking of files on the
   * machine.
   */
  seemsEnded(uuid: string): boolean {
    return this.#isEnded(
      uuid,
      () => !this.isOwnProcess(uuid) && !isLocked(this.folder, uuid, () => NO_LOCKS),
    );
  }

  #isEnded(uuid: string, isUnlocked: () => boolean): boolean {
    const isEnded = () => isUnlocked() || native.orphanedOwners().includes(uuid);
    return OWNER_NAME.test(uuid) && unlessRefused(isEnded, false);
  }

  /**
   * True if the process with this file seems ended, and the file names grants. Then its owner has left
   * them, or lives and has lost its file.
   */
  seemsToLeaveGrants(uuid: string): boolean {
    const hasGrants = () => {
      const bytes = this.folder.read(uuid);
      const file = bytes && decodeOwnerFile(bytes);
      return file?.kind === 'process' && file.pods.length > 0;
    };
    // The next transaction reports damage.
    return this.seemsEnded(uuid) && unlessRefused(hasGrants, false);
  }

  /**
   * True if the file's owner is an ended process whose grants no process has taken back. Needs no lock.
   */
  hasLeftGrants(uuid: string, locks = this.#locks): boolean {
    return this.seemsToLeaveGrants(uuid) && this.hasEnded(uuid, locks);
  }

  /** The owners for which {@link hasLeftGrants} is true. */
  withLeftGrants(): string[] {
    const unlocked: string[] = unlessRefused(() => this.folder.survey().names, []);
    const locks = this.#locks;
    return [...new Set([...unlocked, ...native.orphanedOwners()])].filter((uuid) =>
      this.hasLeftGrants(uuid, locks),
    );
  }

  isOwn(owner: OwnerRecord): boolean {
    return this.own.isOwn(owner);
  }

  /** The descriptor of a lock, for a child that keeps the grants alive. */
  ownFd(): number | undefined {
    return this.own.owner?.fd;
  }

  /**
   * Makes the files match the state on record: drops what a crash left behind and rewrites what was
   * removed. If the disk fails, the files claim too much, which does no harm. Returns the names of
   * strays, see {@link isStray}.
   */
  follow({ generation, assignments }: Checkpoint): readonly string[] {
    const { pods, settings, kubelet } = assignments;
    this.#turn++;
    if (this.#isUnsettled) this.own.doubt();
    this.#isUnsettled = false;
    const header = { bootId: this.#bootId, generation, settings };
    this.#header = header;
    this.own.since = generation;
    unlessRefused(() => this.own.follow(header, { pods, kubelet }));
    this.#turnLocks = this.#locks;
    const now = process.uptime();
    const names = this.#found;
    this.#found = undefined;
    if (now < this.#nextSweep) return [];
    this.#nextSweep = now + SWEEP_PERIOD_S;
    const sweep = { ownUuid: this.own.uuid, locks: this.#turnLocks, names };
    return unlessRefused(() => this.#others.sweep(pods, header, sweep), []);
  }

  /**
   * Call before committing the generation after `generation`. Files then claim both what their
   * owners have and what they will have: perhaps more than the state, never less. Call the result
   * with true if the commit succeeded; files then drop what the state in force does not have. If
   * the disk fails, a file claims too much, which does no harm.
   */
  claim(
    generation: number,
    before: Assignments | undefined,
    next: Assignments,
  ): (isCommitted: boolean) => void {
    const header = { bootId: this.#bootId, generation, settings: (before ?? next).settings };
    this.#header = header;
    const changes = podListChanges(before?.pods ?? [], next.pods);
    const files = this.#others.changed(before?.pods ?? [], next.pods, changes);
    const turn = this.#turn;
    this.#isUnsettled = true;
    const settle = (isCommitted: boolean) => {
      // Another process may have the lock by now. If this environment took it again, that
      // transaction has done all of this.
      if (turn !== this.#turn) return;
      this.#isUnsettled = false;
      // No state is in force, so the claims are all that is known.
      if (!isCommitted && before === undefined) return;
      if (!isCommitted) {
        // The file may claim pods of the failed commit, whose generation is of no state.
        this.own.doubt();
        this.own.since = generation;
      }
      const inForce = isCommitted || before === undefined ? next : before;
      unlessRefused(() => this.own.follow(header, inForce));
      this.#others.settle(files, header, isCommitted);
      // Lets others see at a glance that the grants were taken back.
      if (isCommitted)
        this.#others.removeEnded(podsBefore(changes), next.pods, this.own.uuid, this.#turnLocks);
    };
    try {
      this.own.claim(header, before, next);
      this.#others.claim(files, header);
    } catch (error) {
      settle(false);
      throw error;
    }
    return settle;
  }

  /**
   * Gives up this environment's share of its only grant. Returns true if a child still holds it.
   * @throws ERR_OWNER_SHARED
   */
  handOver(uid: string): boolean {
    const uuid = this.own.handOver(uid);
    return uuid !== undefined && isLocked(this.folder, uuid, this.#locks);
  }

  /** Grants of ended Workers of this process, whose threads are still on the CPUs. */
  orphans(pods: readonly PodAssignment[]): PodAssignment[] {
    const orphaned = native.orphanedOwners().map((uuid) => ({ uuid }));
    return podsOf(pods, orphaned);
  }

  isAlive(owner: OwnerRecord, locks = this.#locks): boolean {
    return this.isOwn(owner) || isOwnerAlive(this.folder, owner, locks);
  }

  /** True if the process (or Worker) with this file lives. */
  isProcessAlive(uuid: string, locks = this.#locks): boolean {
    return this.isOwnProcess(uuid) || isLocked(this.folder, uuid, locks);
  }

  /** True if the uuid is this environment's. */
  isOwnProcess(uuid: string): boolean {
    return this.own.uuid === uuid;
  }

  /**
   * The grants whose owners are dead. Checks owners whose end may go unreported. `mostCgroups`: see
   * {@link LivingOwners.deadAmong}.
   */
  deadPods(pods: readonly PodAssignment[], mostCgroups?: number): readonly PodAssignment[] {
    const owners = mortalOwners(pods);
    if (owners.length === 0) return NONE;
    const locks = this.#locks;
    this.#turnLocks = locks;
    const isAlive = (owner: OwnerRecord) => this.isAlive(owner, locks);
    const dead =
      this.#living?.deadAmong(owners, isAlive, mostCgroups) ?? owners.filter((owner) => !isAlive(owner));
    return dead.length === 0 ? NONE : podsOfDead(pods, dead, (uuid) => this.isProcessAlive(uuid, locks));
  }

  /**
   * The owners' claims, for a lost state. With a checkpoint on record, only claims that it may
   * lack.
   */
  find(checkpoint?: Checkpoint): FoundOwners {
    const record = checkpoint && {
      generation: checkpoint.generation,
      owners: new Set(checkpoint.assignments.pods.map(({ owner }) => owner.uuid)),
    };
    // Texts of pods that were read compare, those of pods in memory may have another order.
    const ownFile = record ? undefined : this.own.owner?.file;
    const names = record && this.#names;
    const found = findOwners(this.folder, this.#bootId, { ownFile, path: this.path, record, names });
    this.#found = found.names;
    if (!record || !this.#isUnsettled) return found;
    return { ...found, living: found.living.filter(({ uuid }) => !this.isOwnProcess(uuid)) };
  }
}

/** Questions about owners. They change nothing. */
export type OwnerLookup = Pick<Owners, 'isOwn' | 'isProcessAlive' | 'deadPods'>;

/** The owners of grants on record, and whether they live. */
export type OwnerRegistry = OwnerLookup &
  Pick<Owners, 'recordFor' | 'ownFd' | 'handOver' | 'orphans' | 'isAlive' | 'isOwnProcess'>;
