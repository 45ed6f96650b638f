// Owners: who a grant belongs to, and whether it still lives. A process owns through a locked file
// in owners/; the kernel drops the lock when the process dies, in whatever pid namespace. A cgroup
// owns while a process is in it, a persistent owner until its grant is released.
import { randomUUID } from 'node:crypto';
import type { Assignments } from '../../account/assignments.js';
import { mortalOwners, podsOf, podsOfDead } from '../../account/owners-of-pods.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { podListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { OwnerChoice } from '../../input/owner.js';
import { type FoundOwners, findOwners, isLocked, isOwnerAlive, OWNER_NAME } from '../files/state-files.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { decodeOwnerFile } from '../format/owner-file.js';
import { LivingOwners, type OwnerNotices } from './living-owners.js';
import { OwnOwner } from './own-owner.js';
import { harmlessly, OwnerFiles } from './owner-files.js';
import { union } from './owner-pods.js';
import { type Header, newOwner } from './owner-record.js';
import type { OwnerRegistry } from './owner-registry.js';

const NONE: readonly PodAssignment[] = [];

// How often a transaction looks at all files of owners.
const SWEEP_PERIOD_S = 1;

/**
 * The owners of one state folder, this environment among them. Every member but the questions
 * REQUIRES the state's lock.
 */
export class Owners implements OwnerRegistry {
  readonly #folder: NativeFolder;
  readonly #path: string;
  readonly #others: OwnerFiles;
  #living: LivingOwners | undefined;
  #bootId: string;
  // This environment, where it owns something.
  #own: OwnOwner | undefined;
  #header: Header | undefined;
  // The pods on record with which the own file agrees.
  #followed: readonly PodAssignment[] | undefined;
  #nextSweep = 0;
  // Counts the transactions of this environment.
  #turn = 0;

  /** `folder`: owners/ of the state folder at `path`, by which its users call it. */
  constructor(folder: NativeFolder, path: string, bootId: string) {
    this.#folder = folder;
    this.#path = path;
    this.#bootId = bootId;
    this.#others = new OwnerFiles(folder, path);
  }

  /** From now on an owner need not be looked at again as long as these say nothing of it. */
  hear(notices: OwnerNotices): LivingOwners {
    this.#living = new LivingOwners(notices, {
      areNoticesComplete: () => this.#folder.isLocal() && this.#folder.isCurrent(),
      hasEnded: (uuid) => this.hasEnded(uuid),
      // Node loads a part of itself for performance.now().
      now: () => process.uptime(),
    });
    return this.#living;
  }

  /** This boot has another id where the state's other users are. */
  renameBoot(bootId: string): void {
    this.#bootId = bootId;
  }

  recordFor(owner: OwnerChoice): OwnerRecord {
    if (owner !== 'process') return newOwner(owner, randomUUID());
    if (!this.#own) {
      this.#own = new OwnOwner(this.#folder, this.#path, this.#header!);
      this.#followed = undefined;
    }
    return this.#own.record;
  }

  /** Whether this environment has a grant. */
  get holdsGrant(): boolean {
    return this.#own?.holdsGrant ?? false;
  }

  /** Whether others need to know that it lives: it has a grant, or keeps the kubelet's record. */
  get isNeeded(): boolean {
    return this.holdsGrant || (this.#own?.keepsKubelet ?? false);
  }

  /** Whether the process (or Worker) with this file has ended. False where that cannot be told. */
  hasEnded(uuid: string): boolean {
    if (!OWNER_NAME.test(uuid)) return false;
    try {
      return !this.isProcessAlive(uuid) || native.orphanedOwners().includes(uuid);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      return false;
    }
  }

  /**
   * Whether the owner of a file is a process that has ended, and had grants that nobody has taken
   * back. Needs no lock.
   */
  hasLeftGrants(uuid: string): boolean {
    if (!this.hasEnded(uuid)) return false;
    try {
      const bytes = this.#folder.read(uuid);
      if (bytes === undefined) return false;
      const { kind, pods } = decodeOwnerFile(bytes);
      return kind === 'process' && pods.length > 0;
    } catch (error) {
      // The next transaction says what is wrong with it.
      if (!(error instanceof NumalignError)) throw error;
      return false;
    }
  }

  /** The owners of which {@link hasLeftGrants} is true. */
  withLeftGrants(): string[] {
    let names: string[] = [];
    harmlessly(() => {
      names = this.#folder.list();
    });
    return names.filter((uuid) => this.hasLeftGrants(uuid));
  }

  /**
   * Writes the own file again where it was removed, replaced or overwritten. Answers whether it
   * was. Where nobody needs it, its lock is let go instead: nobody need wait for it.
   * REQUIRES: no transaction of this environment.
   */
  reassert(): boolean {
    const own = this.#own;
    if (!own) return false;
    if (this.isNeeded) return own.reassert();
    if (!own.isCurrent) this.close();
    return false;
  }

  isOwn(owner: OwnerRecord): boolean {
    return owner.kind === 'process' && this.#own?.record.uuid === owner.uuid;
  }

  ownFd(): number | undefined {
    return this.#own?.fd;
  }

  /**
   * Makes the files agree with the state on record: what a crash left behind is dropped, and what
   * was taken away written again. Where the disk fails they claim too much, which does no harm.
   */
  follow({ generation, assignments }: Checkpoint): void {
    const { pods, settings, kubelet } = assignments;
    this.#turn++;
    this.#header = { bootId: this.#bootId, generation, settings };
    harmlessly(() => this.#followOwn(pods, kubelet));
    const now = process.uptime();
    if (now < this.#nextSweep) return;
    this.#nextSweep = now + SWEEP_PERIOD_S;
    harmlessly(() => this.#others.sweep(pods, this.#header!, this.#own?.record.uuid));
  }

  /**
   * Before the commit of the generation after `generation`: files get what the next state gives to
   * their owners, and keep what they have. So they may claim more than the state, never less. To be
   * called with whether it was committed: then files lose what the state in force does not have.
   * That one claims too much, because the disk fails then too, does no harm.
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
    const settle = (isCommitted: boolean) => {
      // The lock may be somebody else's by now; if the next one is ours, it has seen to all of
      // this.
      if (turn !== this.#turn) return;
      // No state is in force that they could follow: what they claim is all that is known.
      if (!isCommitted && before === undefined) return;
      // It may claim what came to nothing.
      if (!isCommitted) this.#followed = undefined;
      const { pods, kubelet } = isCommitted || before === undefined ? next : before;
      harmlessly(() => this.#followOwn(pods, kubelet));
      this.#others.settle(files, header, isCommitted);
      // So that others see at a glance that their grants were taken back.
      if (isCommitted) this.#others.removeEnded(podsBefore(changes), next.pods, this.#own?.record.uuid);
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

  #claimOwn(before: Assignments | undefined, next: Assignments, taken: readonly PodAssignment[]): void {
    const own = this.#own;
    if (!own) return;
    if (before === undefined) {
      // After a recovery the file may be damaged too.
      this.#followed = undefined;
      own.writeAll(
        this.#header!,
        union(
          own.file.pods,
          next.pods.filter((pod) => own.holds(pod)),
        ),
      );
    } else {
      own.write(
        this.#header!,
        taken.filter((pod) => own.holds(pod)),
        [],
      );
    }
    const { kubelet } = next;
    if (kubelet && this.isOwn(kubelet.keeper)) own.keep(this.#header!, kubelet);
  }

  #followOwn(pods: readonly PodAssignment[], kubelet: Assignments['kubelet']): void {
    const own = this.#own;
    if (!own) return;
    own.keep(this.#header!, kubelet && this.isOwn(kubelet.keeper) ? kubelet : null);
    if (this.#followed === pods) return;
    const last = this.#followed;
    this.#followed = undefined;
    if (last) {
      const changes = podListChanges(last, pods);
      const kept = podsAfter(changes).filter((pod) => own.holds(pod));
      const uids = new Set(kept.map(({ uid }) => uid));
      const released = podsBefore(changes).flatMap(({ uid }) => (uids.has(uid) ? [] : [uid]));
      own.write(this.#header!, kept, released);
    } else {
      own.agree(
        this.#header!,
        pods.filter((pod) => own.holds(pod)),
      );
    }
    this.#followed = pods;
  }

  handOver(uid: string): boolean {
    const own = this.#own;
    const pods = own?.file.pods ?? [];
    if (!own || !pods.some((pod) => pod.uid === uid)) return false;
    const { keepsKubelet } = own;
    if (pods.length > 1 || keepsKubelet) {
      const others = keepsKubelet ? 'a grant and the record of the kubelet' : `${pods.length} grants`;
      throw new NumalignError(
        'ERR_OWNER_SHARED',
        `this process holds ${others} by one lock: only a sole grant can be handed over`,
        { value: uid, valid: pods.map((pod) => pod.uid) },
      );
    }
    this.close();
    return isLocked(this.#folder, own.record.uuid, this.#path);
  }

  /** This environment owns nothing any more. */
  close(): void {
    this.#own?.close();
    this.#own = undefined;
    this.#followed = undefined;
  }

  /** Grants of Workers of this process that have ended, whose threads are still on the CPUs. */
  orphans(pods: readonly PodAssignment[]): PodAssignment[] {
    const orphaned = native.orphanedOwners().map((uuid) => ({ uuid }));
    return podsOf(pods, orphaned);
  }

  isAlive(owner: OwnerRecord): boolean {
    return this.isOwn(owner) || isOwnerAlive(this.#folder, owner, this.#path);
  }

  /** Whether the process (or Worker) with this file lives. */
  isProcessAlive(uuid: string): boolean {
    return this.isOwnProcess(uuid) || isLocked(this.#folder, uuid, this.#path);
  }

  isOwnProcess(uuid: string): boolean {
    return this.#own?.record.uuid === uuid;
  }

  /**
   * The grants whose owners are dead. Looks at an owner where its end may have come without notice.
   * `mostCgroups`: as of {@link LivingOwners.deadAmong}.
   */
  deadPods(pods: readonly PodAssignment[], mostCgroups?: number): readonly PodAssignment[] {
    const owners = mortalOwners(pods);
    if (owners.length === 0) return NONE;
    const isAlive = (owner: OwnerRecord) => this.isAlive(owner);
    const dead =
      this.#living?.deadAmong(owners, isAlive, mostCgroups) ?? owners.filter((owner) => !isAlive(owner));
    return dead.length === 0 ? NONE : podsOfDead(pods, dead, (uuid) => this.isProcessAlive(uuid));
  }

  /**
   * What the owners' files say, for a state that is lost. With one on record only what that may not
   * know.
   */
  find(checkpoint?: Checkpoint): FoundOwners {
    const known = checkpoint && {
      generation: checkpoint.generation,
      owners: new Set(checkpoint.assignments.pods.map(({ owner }) => owner.uuid)),
    };
    return findOwners(this.#folder, this.#bootId, this.#own?.file, this.#path, known);
  }
}
