// OwnerFiles: the files of owners other than processes, and the files that dead processes left.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { type PodListChanges, podsAfter, podsBefore } from '../../account/pod-list-changes.js';
import { unlessRefused } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import { isLocked, isNewerOwner, isStray, OWNER_NAME, ownerIn } from '../files/owner-claims.js';
import type { LocksOfFolder } from '../files/owner-locks.js';
import { type ChangeNames, changeAlone } from '../files/owner-names.js';
import { encodeOwnerFile } from '../format/owner-file.js';
import { byFile, union, uuidsOf } from './owner-pods.js';
import { fileOf, type Header } from './owner-record.js';

type Pods = readonly PodAssignment[];

/** An owner whose pods on record change. */
interface ChangedOwner {
  readonly uuid: string;
  readonly before: Pods;
  readonly after: Pods;
}

interface Sweep {
  readonly ownUuid: string | undefined;
  readonly locks: LocksOfFolder;
  readonly names?: readonly string[] | undefined;
}

// So many take a fraction of a second to put aside.
const MOST_STRAYS = 1000;

/** Every method REQUIRES the state's lock. */
export class OwnerFiles {
  readonly #change: ChangeNames;

  /** `folder`: owners/ of the state folder. */
  constructor(
    private readonly folder: NativeFolder,
    change = changeAlone,
  ) {
    this.#change = change;
  }

  /** The owners whose files change from one list of pods to another. */
  changed(before: Pods, after: Pods, changes: PodListChanges): ChangedOwner[] {
    const uuids = uuidsOf([...podsBefore(changes), ...podsAfter(changes)]);
    if (uuids.length === 0) return [];
    const [former, present] = [byFile(before), byFile(after)];
    return uuids.map((uuid) => ({ uuid, before: former.get(uuid) ?? [], after: present.get(uuid) ?? [] }));
  }

  /** Writes files that claim both the old and the new pods. @throws ERR_SYSCALL */
  claim(owners: readonly ChangedOwner[], header: Header): void {
    for (const { before, after } of owners) if (after.length > 0) this.#write(union(before, after), header);
  }

  /** Writes files that claim exactly what is on record after the commit, or after its failure. */
  settle(owners: readonly ChangedOwner[], header: Header, isCommitted: boolean): void {
    for (const { uuid, before, after } of owners) {
      const pods = isCommitted ? after : before;
      if (pods.length === 0) this.#remove([uuid]);
      // The file already claims the pods that this commit added.
      else if (!isCommitted || before.length > 1) unlessRefused(() => this.#write(pods, header));
    }
  }

  // REQUIRES: at least one pod, and one owner for all.
  #write(pods: Pods, header: Header): void {
    const { owner } = pods[0]!;
    const text = encodeOwnerFile(fileOf(owner, header, pods));
    this.#change([owner.uuid], () => this.folder.replace(owner.uuid, text));
  }

  #remove(names: readonly string[]): void {
    if (names.length === 0) return;
    this.#change(names, () => {
      for (const name of names) unlessRefused(() => this.folder.remove(name));
    });
  }

  /**
   * Removes the files of ended processes without pods on record. `ownUuid`: skipped, because it lives.
   */
  removeEnded(endedPods: Pods, onRecord: Pods, ownUuid: string | undefined, locks: LocksOfFolder): void {
    const processes = endedPods.flatMap(({ owner: { kind, uuid } }) => (kind === 'process' ? [uuid] : []));
    const ended = [...new Set(processes)].filter((uuid) => {
      if (uuid === ownUuid || onRecord.some(({ owner }) => owner.uuid === uuid)) return false;
      return unlessRefused(() => !isLocked(this.folder, uuid, locks), false);
    });
    this.#remove(ended);
  }

  /**
   * Removes files of dead owners and of failed grants, and rewrites files that were removed. Under
   * the lock there is no new file that is not locked yet. Returns the names of some strays. `names`: as
   * {@link FoundOwners.names}, if known.
   */
  sweep(pods: Pods, header: Header, { ownUuid, locks, ...known }: Sweep): readonly string[] {
    const onRecord = new Set(pods.map(({ owner }) => owner.uuid));
    const names = new Set(known.names ?? this.folder.survey().names);
    const strays: string[] = [];
    const ended: string[] = [];
    const isLeft = (uuid: string) => !isLocked(this.folder, uuid, locks) && !isNewerOwner(this.folder, uuid);
    for (const name of names) {
      const uuid = ownerIn(name);
      if (!OWNER_NAME.test(uuid) || name === ownUuid || onRecord.has(name)) continue;
      if (isStray(this.folder, name, locks)) strays.push(name);
      else if (name !== uuid || isLeft(uuid)) ended.push(name);
    }
    this.#remove(ended);
    for (const [uuid, its] of byFile(pods))
      if (!names.has(uuid) && this.folder.version(uuid) === undefined) this.#write(its, header);
    return strays.slice(0, MOST_STRAYS);
  }
}
