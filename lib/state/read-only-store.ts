// ReadOnlyStore: reads a state folder without making, locking or writing a file. It needs only read
// access and blocks no other process.
import { join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import type { TotalOn } from '../account/booked-memory.js';
import { mortalOwners, podsOfDead } from '../account/owners-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { withoutPods } from '../account/pod-changes.js';
import { Registry } from '../base/collections/registry.js';
import type { NativeFolder } from '../base/native-files.js';
import { FolderWatch, type Listener, type Listening } from './files/folder-watch.js';
import { JournalFollower } from './files/journal-follower.js';
import { findOwners, isLocked, isOfBoot, isOwnerAlive, NO_OWNERS } from './files/owner-claims.js';
import { COPY_FILE, type FoundState, findState, type GoodState, STATE_FILE } from './files/state-files.js';
import { childOf, openExisting, withChild } from './folder/existing.js';
import { readBootId, scopeOf } from './folder/folder.js';
import { explaining } from './folder/folder-error.js';
import type { Checkpoint } from './format/checkpoint.js';
import type { OwnerLookup } from './owners/owners.js';
import { lastGood, rebuild } from './owners/recovery.js';
import type { StateSource } from './store.js';

/**
 * Recovers a damaged or missing state in memory; undefined if there was none.
 * @throws ERR_STATE_CORRUPT if nothing can be recovered, ERR_STATE_VERSION
 */
export function recovered(
  folder: NativeFolder,
  found: FoundState,
  owners: NativeFolder | undefined,
  totalOn: TotalOn,
): Checkpoint | undefined {
  const bootId = readBootId();
  const previous = findState(folder, COPY_FILE);
  const base = lastGood(found, previous, () => folder.read(COPY_FILE));
  const claims = owners ? findOwners(owners, bootId) : NO_OWNERS;
  const rebuilt = rebuild({ found, previous, base, owners: claims }, bootId, totalOn);
  return rebuilt && { ...rebuilt, generation: base?.generation ?? 0, writtenAt: '' };
}

/**
 * The grants whose owners are dead. `owners`: owners/ of the state folder; undefined if there is
 * none.
 */
export function deadPods(owners: NativeFolder | undefined, pods: readonly PodAssignment[]): PodAssignment[] {
  const dead = mortalOwners(pods).filter((owner) => !isOwnerAlive(owners, owner));
  return podsOfDead(pods, dead, (uuid) => owners !== undefined && isLocked(owners, uuid));
}

interface Open {
  readonly folder: NativeFolder;
  readonly owners: NativeFolder | undefined;
  readonly journal: JournalFollower;
}

/** Each reader needs its own object. */
export class ReadOnlyStore implements StateSource {
  readonly scope: 'machine' | 'private' | 'memory';
  readonly path: string;
  readonly registry: Registry<StateSource> = new Registry<StateSource>(this);
  readonly recoveries = [];
  readonly owners: OwnerLookup = {
    isOwn: () => false,
    deadPods: (pods) => this.#deadPods(pods),
    isProcessAlive: (uuid) => this.#isProcessAlive(uuid),
  };
  #nothing: Checkpoint | undefined;
  readonly #watch: FolderWatch;
  #open: Open | undefined;
  // The last result of the journal, and the checkpoint made from it.
  #found: FoundState | undefined;
  #checkpoint: Checkpoint | undefined;

  /**
   * `path`: undefined for a state in memory. `empty`: returns the assignments if there is no state.
   * Opens nothing.
   */
  constructor(
    path: string | undefined,
    private readonly empty: () => Assignments,
    private readonly totalOn: TotalOn,
  ) {
    this.path = path ?? 'memory';
    this.scope = path === undefined ? 'memory' : scopeOf(path);
    this.#watch = new FolderWatch(this.path, STATE_FILE);
  }

  /**
   * The newest committed checkpoint; without one, an empty checkpoint of generation 0. Leaves out
   * grants of an earlier boot, which are void. Synchronous: two stats, and a read only if the file
   * has changed.
   * @throws ERR_STATE_FOLDER if this process may not read the folder, ERR_STATE_CORRUPT if nothing
   *   of a damaged state can be recovered, ERR_STATE_VERSION, ERR_SYSCALL
   */
  read(): Checkpoint {
    const found = explaining(this.path, () => this.#read());
    return found ?? this.#emptyCheckpoint();
  }

  get found(): GoodState | undefined {
    return this.#open?.journal.good;
  }

  #emptyCheckpoint(): Checkpoint {
    this.#nothing ??= { generation: 0, bootId: '', writtenAt: '', assignments: this.empty() };
    return this.#nothing;
  }

  #read(): Checkpoint | undefined {
    const open = this.#follow();
    if (!open) return undefined;
    const found = open.journal.look();
    if (found === this.#found) return this.#checkpoint;
    const checkpoint =
      found.kind === 'good' ? found.checkpoint : recovered(open.folder, found, open.owners, this.totalOn);
    this.#checkpoint = checkpoint && ofThisBoot(checkpoint, open.owners);
    this.#found = found;
    return this.#checkpoint;
  }

  // Follows the path, whose folder may be made, removed or replaced at any time.
  #follow(): Open | undefined {
    if (this.scope === 'memory') return undefined;
    const open = this.#open;
    if (open?.folder.isCurrent()) {
      if (!open.owners?.isCurrent()) this.#openOwners(open);
      return this.#open;
    }
    this.#forget();
    const folder = openExisting(this.path);
    if (folder) this.#openOwners({ folder, owners: undefined, journal: new JournalFollower(folder) });
    if (open || folder) this.#watch.restart();
    return this.#open;
  }

  #openOwners(open: Open): void {
    open.owners?.close();
    this.#open = { ...open, owners: undefined };
    this.#open = { ...open, owners: childOf(open.folder, 'owners') };
  }

  #forget(): void {
    this.#open?.journal.forget();
    this.#open?.folder.close();
    this.#open?.owners?.close();
    this.#open = undefined;
    this.#found = undefined;
    this.#checkpoint = undefined;
  }

  #deadPods(pods: readonly PodAssignment[]): PodAssignment[] {
    return explaining(this.path, () => deadPods(this.#follow()?.owners, pods));
  }

  #isProcessAlive(uuid: string): boolean {
    return explaining(this.path, () => {
      const owners = this.#follow()?.owners;
      return owners !== undefined && isLocked(owners, uuid);
    });
  }

  /** Calls `look` with a folder inside the state folder; returns undefined if there is none. */
  lookInto<T>(name: string, look: (folder: NativeFolder, path: string) => T): T | undefined {
    return explaining(this.path, () => {
      const open = this.#follow();
      return open && withChild(open.folder, name, (folder) => folder && look(folder, join(this.path, name)));
    });
  }

  watch(listener: Listener, listening: Listening = {}): () => void {
    return this.scope === 'memory' ? () => {} : this.#watch.add(listener, listening);
  }

  /** Closes the folder. The next read opens it again. */
  close(): void {
    this.#forget();
  }
}

function ofThisBoot(checkpoint: Checkpoint, owners: NativeFolder | undefined): Checkpoint {
  if (isOfBoot(checkpoint.bootId, readBootId(), owners)) return checkpoint;
  return { ...checkpoint, assignments: withoutPods(checkpoint.assignments) };
}
