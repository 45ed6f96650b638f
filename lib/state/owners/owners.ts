// Owners: the owner of each grant, and whether it lives. A process owns through a locked file in
// owners/; the kernel drops the lock when the process dies, in any pid namespace. A cgroup owns
// while it has a process, a persistent owner until its grant is released.
import { randomUUID } from 'node:crypto';
import type { Assignments } from '../../account/assignments.js';
import { mortalOwners, podsOf, podsOfDead } from '../../account/owners-of-pods.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { podListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { OwnerChoice } from '../../input/requests/owner.js';
import { type LocksOfFolder, locksOf } from '../files/owner-locks.js';
import { type FoundOwners, findOwners, isLocked, isOwnerAlive, OWNER_NAME } from '../files/state-files.js';
import { explaining } from '../folder/folder-error.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { decodeOwnerFile } from '../format/owner-file.js';
import { LivingOwners, type OwnerNotices } from './living-owners.js';
import { OwnOwner } from './own-owner.js';
import { harmlessly, OwnerFiles } from './owner-files.js';
import { union } from './owner-pods.js';
import { type Header, newOwner } from './owner-record.js';
import type { OwnerRegistry } from './owner-registry.js';

const NONE: readonly PodAssignment[] = [];

// How often a transaction checks all owners' files.
const SWEEP_PERIOD_S = 1;

/**
 * The owners of one state folder, with this environment. Every member outside {@link OwnerLookup}
 * REQUIRES the state's lock.
 */
export class Owners implements OwnerRegistry {
  readonly #folder: NativeFolder;
  readonly #path: string;
  readonly #others: OwnerFiles;
  #living: LivingOwners | undefined;
  #bootId: string;
  // This environment, if it owns something.
  #ownOwner: OwnOwner | undefined;
  #header: Header | undefined;
  // The pods on record that this environment's file matches.
  #followed: readonly PodAssignment[] | undefined;
  // True if the outcome of a commit is unknown: its claim may be of no state.
  #isUnsettled = false;
  // What the file claimed when other programs removed or changed it, until the next transaction.
  #atStake: readonly PodAssignment[] = NONE;
  #lost: readonly PodAssignment[] = NONE;
  #nextSweep = 0;
  // Counts this environment's transactions.
  #turn = 0;

  /** `folder`: owners/ of the state folder. `path`: the state folder. */
  constructor(folder: NativeFolder, path: string, bootId: string) {
    this.#folder = folder;
    this.#path = path;
    this.#bootId = bootId;
    this.#others = new OwnerFiles(folder, path);
  }

  // As they are at the first question.
  get #locks(): LocksOfFolder {
    return locksOf(this.#folder, this.#path);
  }

  /** Caches which owners live while `notices` report each end. */
  hear(notices: OwnerNotices): LivingOwners {
    this.#living = new LivingOwners(notices, {
      areNoticesComplete: () => this.#folder.isLocal() && this.#folder.isCurrent(),
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

  recordFor(owner: OwnerChoice): OwnerRecord {
    if (owner !== 'process') return newOwner(owner, randomUUID());
    if (!this.#ownOwner) {
      const make = () => new OwnOwner(this.#folder, this.#path, this.#header!);
      this.#ownOwner = explaining(this.#path, make);
      this.#followed = undefined;
    }
    return this.#ownOwner.record;
  }

  /** True if this environment has a grant. */
  get holdsGrant(): boolean {
    return this.#ownOwner?.holdsGrant ?? false;
  }

  /**
   * True if other processes must see that this one lives: it has a grant or keeps the kubelet's
   * record.
   */
  get isNeeded(): boolean {
    return this.holdsGrant || (this.#ownOwner?.keepsKubelet ?? false);
  }

  /** True if the process (or Worker) with this file has ended. False if it cannot be checked. */
  hasEnded(uuid: string, locks = this.#locks): boolean {
    if (!OWNER_NAME.test(uuid)) return false;
    try {
      return !this.isProcessAlive(uuid, locks) || native.orphanedOwners().includes(uuid);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      return false;
    }
  }

  /**
   * True if the file's owner is an ended process whose grants no process has taken back. Needs no lock.
   */
  hasLeftGrants(uuid: string, locks = this.#locks): boolean {
    if (!this.hasEnded(uuid, locks)) return false;
    try {
      const bytes = this.#folder.read(uuid);
      if (bytes === undefined) return false;
      const { kind, pods } = decodeOwnerFile(bytes);
      return kind === 'process' && pods.length > 0;
    } catch (error) {
      // The next transaction reports the damage.
      if (!(error instanceof NumalignError)) throw error;
      return false;
    }
  }

  /** The owners for which {@link hasLeftGrants} is true. */
  withLeftGrants(): string[] {
    let names: string[] = [];
    harmlessly(() => {
      names = this.#folder.list();
    });
    const locks = this.#locks;
    return names.filter((uuid) => this.hasLeftGrants(uuid, locks));
  }

  /**
   * Writes this environment's file again if it was removed, replaced or overwritten. Returns true
   * if it was. If no process needs the file, releases its lock instead, so that no process waits for it.
   * REQUIRES: no transaction of this environment.
   */
  reassert(): boolean {
    const self = this.#ownOwner;
    if (!self) return false;
    if (!this.isNeeded) {
      if (!self.isCurrent) this.close();
      return false;
    }
    const isRewritten = self.reassert();
    if (isRewritten) {
      this.#atStake = self.file.pods;
      this.#followed = undefined;
    }
    return isRewritten;
  }

  /** The grants that the last {@link reassert} put at stake, and that are not on record. */
  get lost(): readonly PodAssignment[] {
    return this.#lost;
  }

  /** The generation of the last commit that this environment's claims came with; else 0. */
  get since(): number {
    return this.#ownOwner?.since ?? 0;
  }

  isOwn(owner: OwnerRecord): boolean {
    return owner.kind === 'process' && this.#ownOwner?.record.uuid === owner.uuid;
  }

  ownFd(): number | undefined {
    return this.#ownOwner?.fd;
  }

  /**
   * Makes the files match the state on record: drops what a crash left behind and rewrites what was
   * removed. If the disk fails, the files claim too much, which does no harm. Returns the names of
   * strays, see {@link isStray}.
   */
  follow({ generation, assignments }: Checkpoint): readonly string[] {
    const { pods, settings, kubelet } = assignments;
    this.#turn++;
    if (this.#isUnsettled) this.#followed = undefined;
    this.#isUnsettled = false;
    this.#header = { bootId: this.#bootId, generation, settings };
    if (this.#ownOwner) this.#ownOwner.since = generation;
    harmlessly(() => this.#followOwn(pods, kubelet));
    const now = process.uptime();
    let strays: readonly string[] = [];
    if (now < this.#nextSweep) return strays;
    this.#nextSweep = now + SWEEP_PERIOD_S;
    harmlessly(() => {
      strays = this.#others.sweep(pods, this.#header!, this.#ownOwner?.record.uuid);
    });
    return strays;
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
      // The file may claim pods of the failed commit.
      if (!isCommitted) this.#followed = undefined;
      // Its generation is of no state.
      if (!isCommitted && this.#ownOwner) this.#ownOwner.since = generation;
      const { pods, kubelet } = isCommitted || before === undefined ? next : before;
      harmlessly(() => this.#followOwn(pods, kubelet));
      this.#others.settle(files, header, isCommitted);
      // Lets others see at a glance that the grants were taken back.
      if (isCommitted) this.#others.removeEnded(podsBefore(changes), next.pods, this.#ownOwner?.record.uuid);
    };
    try {
      this.#claimOwn(before, next, podsAfter(changes));
      this.#others.claim(files, header);
    } catch (error) {
      settle(false);
      throw error;
    }
    return settle;
  }

  #claimOwn(before: Assignments | undefined, next: Assignments, newPods: readonly PodAssignment[]): void {
    const self = this.#ownOwner;
    if (!self) return;
    self.since = this.#header!.generation + 1;
    if (before === undefined) {
      // The file may be damaged too after a recovery.
      this.#followed = undefined;
      self.writeAll(
        this.#header!,
        union(
          self.file.pods,
          next.pods.filter((pod) => self.holds(pod)),
        ),
      );
    } else {
      self.write(
        this.#header!,
        newPods.filter((pod) => self.holds(pod)),
        [],
      );
    }
    const { kubelet } = next;
    if (kubelet && this.isOwn(kubelet.keeper)) self.keep(this.#header!, kubelet);
  }

  #followOwn(pods: readonly PodAssignment[], kubelet: Assignments['kubelet']): void {
    const self = this.#ownOwner;
    if (!self) return;
    self.keep(this.#header!, kubelet && this.isOwn(kubelet.keeper) ? kubelet : null);
    if (this.#followed === pods) return;
    const last = this.#followed;
    this.#followed = undefined;
    if (last) {
      const changes = podListChanges(last, pods);
      const ownPods = podsAfter(changes).filter((pod) => self.holds(pod));
      const uids = new Set(ownPods.map(({ uid }) => uid));
      const endedUids = podsBefore(changes).flatMap(({ uid }) => (uids.has(uid) ? [] : [uid]));
      self.write(this.#header!, ownPods, endedUids);
    } else {
      const ownPods = pods.filter((pod) => self.holds(pod));
      this.#lost = this.#atStake.filter(({ uid }) => !ownPods.some((pod) => pod.uid === uid));
      this.#atStake = NONE;
      self.agree(this.#header!, ownPods);
    }
    this.#followed = pods;
  }

  handOver(uid: string): boolean {
    const self = this.#ownOwner;
    const pods = self?.file.pods ?? [];
    if (!self || !pods.some((pod) => pod.uid === uid)) return false;
    const { keepsKubelet } = self;
    if (pods.length > 1 || keepsKubelet) {
      const others = keepsKubelet ? 'a grant and the record of the kubelet' : `${pods.length} grants`;
      throw new NumalignError(
        'ERR_OWNER_SHARED',
        `this process holds ${others} by one lock: only a sole grant can be handed over`,
        { value: uid, valid: pods.map((pod) => pod.uid) },
      );
    }
    this.close();
    return isLocked(this.#folder, self.record.uuid, this.#locks);
  }

  /** This environment owns nothing from now on. */
  close(): void {
    this.#ownOwner?.close();
    this.#ownOwner = undefined;
    this.#followed = undefined;
  }

  /** Grants of ended Workers of this process, whose threads are still on the CPUs. */
  orphans(pods: readonly PodAssignment[]): PodAssignment[] {
    const orphaned = native.orphanedOwners().map((uuid) => ({ uuid }));
    return podsOf(pods, orphaned);
  }

  isAlive(owner: OwnerRecord, locks = this.#locks): boolean {
    return this.isOwn(owner) || isOwnerAlive(this.#folder, owner, locks);
  }

  /** True if the process (or Worker) with this file lives. */
  isProcessAlive(uuid: string, locks = this.#locks): boolean {
    return this.isOwnProcess(uuid) || isLocked(this.#folder, uuid, locks);
  }

  isOwnProcess(uuid: string): boolean {
    return this.#ownOwner?.record.uuid === uuid;
  }

  /**
   * The grants whose owners are dead. Checks owners whose end may go unreported. `mostCgroups`: see
   * {@link LivingOwners.deadAmong}.
   */
  deadPods(pods: readonly PodAssignment[], mostCgroups?: number): readonly PodAssignment[] {
    const owners = mortalOwners(pods);
    if (owners.length === 0) return NONE;
    const locks = this.#locks;
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
    const ownFile = record ? undefined : this.#ownOwner?.file;
    const found = findOwners(this.#folder, this.#bootId, ownFile, this.#path, record);
    if (!record || !this.#isUnsettled) return found;
    return { ...found, living: found.living.filter(({ uuid }) => !this.isOwnProcess(uuid)) };
  }
}
