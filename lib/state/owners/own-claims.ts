// OwnClaims: what this environment owns and claims in its own file, if it owns something.
import type { Assignments } from '../../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { podListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { NumalignError } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import { type ChangeNames, changeAlone } from '../files/owner-names.js';
import { explaining } from '../folder/folder-error.js';
import { OwnOwner } from './own-owner.js';
import { union } from './owner-pods.js';
import type { Header } from './owner-record.js';

const NONE: readonly PodAssignment[] = [];

/** What writes REQUIRES the state's lock. */
export class OwnClaims {
  readonly #change: ChangeNames;
  #owner: OwnOwner | undefined;
  // The pods on record that the file matches.
  #followed: readonly PodAssignment[] | undefined;
  // What the file claimed when other programs removed or changed it, until the next transaction.
  #atStake = NONE;
  #lost = NONE;

  /** `folder`: owners/ of the state folder at `path`. */
  constructor(
    private readonly folder: NativeFolder,
    private readonly path: string,
    change: ChangeNames = changeAlone,
  ) {
    this.#change = change;
  }

  /** This environment, if it owns something. */
  get owner(): OwnOwner | undefined {
    return this.#owner;
  }

  get uuid(): string | undefined {
    return this.#owner?.record.uuid;
  }

  isOwn({ kind, uuid }: OwnerRecord): boolean {
    return kind === 'process' && this.uuid === uuid;
  }

  /** The record of this environment as an owner, which it is from now on. @throws ERR_STATE_FOLDER */
  record(header: Header): OwnerRecord {
    if (!this.#owner) {
      this.#owner = explaining(this.path, () => new OwnOwner(this.folder, this.path, header, this.#change));
      this.#followed = undefined;
    }
    return this.#owner.record;
  }

  /** True if this environment has a grant. */
  get holdsGrant(): boolean {
    return this.#owner?.holdsGrant ?? false;
  }

  /**
   * True if other processes must see that this one lives: it has a grant or keeps the kubelet's
   * record.
   */
  get isNeeded(): boolean {
    return this.holdsGrant || (this.#owner?.keepsKubelet ?? false);
  }

  /** The generation of the last commit that the claims came with; else 0. */
  get since(): number {
    return this.#owner?.since ?? 0;
  }

  set since(generation: number) {
    if (this.#owner) this.#owner.since = generation;
  }

  /** The grants that the last {@link reassert} put at stake, and that are not on record. */
  get lost(): readonly PodAssignment[] {
    return this.#lost;
  }

  /**
   * Writes the file again if it was removed, replaced or overwritten. Returns true if it was. If no
   * process needs the file, releases its lock instead, so that no process waits for it.
   * REQUIRES: no transaction of this environment.
   */
  reassert(): boolean {
    const owner = this.#owner;
    if (!owner) return false;
    if (!this.isNeeded) {
      if (!owner.isCurrent) this.close();
      return false;
    }
    const isRewritten = owner.reassert();
    if (isRewritten) {
      this.#atStake = owner.file.pods;
      this.#followed = undefined;
    }
    return isRewritten;
  }

  /** The file may claim what is on no record: {@link follow} compares all of it. */
  doubt(): void {
    this.#followed = undefined;
  }

  /** Claims what this environment will have too. `before`: undefined after a recovery. */
  claim(header: Header, before: Assignments | undefined, { pods, kubelet }: Assignments): void {
    const owner = this.#owner;
    if (!owner) return;
    const ownAmong = (all: readonly PodAssignment[]) => all.filter((pod) => owner.holds(pod));
    owner.since = header.generation + 1;
    if (before) owner.write(header, ownAmong(podsAfter(podListChanges(before.pods, pods))), []);
    else {
      // The file may be damaged too.
      this.#followed = undefined;
      owner.writeAll(header, union(owner.file.pods, ownAmong(pods)));
    }
    if (kubelet && this.isOwn(kubelet.keeper)) owner.keep(header, kubelet);
  }

  /** Makes the file match a state on record. @throws ERR_SYSCALL */
  follow(header: Header, { pods, kubelet }: Pick<Assignments, 'pods' | 'kubelet'>): void {
    const owner = this.#owner;
    if (!owner) return;
    owner.keep(header, kubelet && this.isOwn(kubelet.keeper) ? kubelet : null);
    if (this.#followed === pods) return;
    const last = this.#followed;
    this.#followed = undefined;
    const changes = last && podListChanges(last, pods);
    const ownPods = (changes ? podsAfter(changes) : pods).filter((pod) => owner.holds(pod));
    const uids = new Set(ownPods.map(({ uid }) => uid));
    if (changes) {
      const endedUids = podsBefore(changes).flatMap(({ uid }) => (uids.has(uid) ? [] : [uid]));
      owner.write(header, ownPods, endedUids);
    } else {
      this.#lost = this.#atStake.filter(({ uid }) => !uids.has(uid));
      this.#atStake = NONE;
      owner.agree(header, ownPods);
    }
    this.#followed = pods;
  }

  /**
   * Gives up this environment's only grant. Returns its uuid, undefined if it does not have the grant.
   * @throws ERR_OWNER_SHARED
   */
  handOver(uid: string): string | undefined {
    const owner = this.#owner;
    const uids = owner?.file.pods.map((pod) => pod.uid) ?? [];
    if (!owner || !uids.includes(uid)) return undefined;
    const { keepsKubelet, record } = owner;
    if (uids.length > 1 || keepsKubelet) {
      const others = keepsKubelet ? 'a grant and the record of the kubelet' : `${uids.length} grants`;
      const message = `this process holds ${others} by one lock: only a sole grant can be handed over`;
      throw new NumalignError('ERR_OWNER_SHARED', message, { value: uid, valid: uids });
    }
    this.close();
    return record.uuid;
  }

  /** This environment owns nothing from now on. */
  close(): void {
    this.#owner?.close();
    this.#owner = undefined;
    this.#followed = undefined;
  }
}
