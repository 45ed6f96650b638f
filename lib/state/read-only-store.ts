// ReadOnlyStore: a state folder of which nothing is changed: no file is made, locked or written. So
// it needs no right but to read, and stands in nobody's way.
import { join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import type { TotalOn } from '../account/booked-memory.js';
import { mortalOwners, podsOfDead } from '../account/owners-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { withoutPods } from '../account/pod-changes.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeFolder } from '../base/native-files.js';
import { Registry } from '../base/registry.js';
import { FolderWatch, type Listener, type Listening } from './files/folder-watch.js';
import { JournalFollower } from './files/journal-follower.js';
import {
  COPY_FILE,
  type FoundState,
  findOwners,
  findState,
  type GoodState,
  isLocked,
  isOfBoot,
  isOwnerAlive,
  NO_OWNERS,
  STATE_FILE,
} from './files/state-files.js';
import { readBootId, scopeOf } from './folder/folder.js';
import { explaining } from './folder/folder-error.js';
import type { Checkpoint } from './format/checkpoint.js';
import type { OwnerLookup } from './owners/owner-registry.js';
import { lastGood, rebuild } from './owners/recovery.js';
import type { StateSource } from './store.js';

/** The folder, undefined where there is none. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
export function openExisting(path: string): NativeFolder | undefined {
  return explaining(path, () => {
    try {
      return native.Folder.open(path, false, 0o700, -1);
    } catch (error) {
      if (error instanceof NumalignError && error.errnoName === 'ENOENT') return undefined;
      throw error;
    }
  });
}

/** What `look` makes of a folder in another, undefined where there is none; closed afterwards. */
export function withChild<T>(
  parent: NativeFolder,
  name: string,
  look: (folder: NativeFolder | undefined) => T,
): T {
  const folder = childOf(parent, name);
  try {
    return look(folder);
  } finally {
    folder?.close();
  }
}

function childOf(folder: NativeFolder, name: string): NativeFolder | undefined {
  try {
    return folder.child(name, false, 0o700, -1);
  } catch (error) {
    if (error instanceof NumalignError && error.errnoName === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * What is left of a state that is damaged, or gone; undefined where there was none.
 * @throws ERR_STATE_CORRUPT where nothing can be told, ERR_STATE_VERSION
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
  const clues = {
    ...{ found, previous, base, highest: 0 },
    owners: owners ? findOwners(owners, bootId) : NO_OWNERS,
  };
  const rebuilt = rebuild(clues, bootId, totalOn);
  return rebuilt && { ...rebuilt, generation: base?.generation ?? 0, writtenAt: '' };
}

/**
 * The grants whose owners are dead. `owners`: owners/ of the state folder, undefined where there is
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

/** Not to be shared: each reader has its own. */
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
  readonly #empty: () => Assignments;
  #nothing: Checkpoint | undefined;
  readonly #totalOn: TotalOn;
  readonly #watch: FolderWatch;
  #open: Open | undefined;
  // What was found last, and what it says.
  #found: FoundState | undefined;
  #checkpoint: Checkpoint | undefined;

  /**
   * `path`: undefined where nothing is kept. `empty`: what is on record where there is no state.
   * Opens nothing.
   */
  constructor(path: string | undefined, empty: () => Assignments, totalOn: TotalOn) {
    this.path = path ?? 'memory';
    this.scope = path === undefined ? 'memory' : scopeOf(path);
    this.#empty = empty;
    this.#totalOn = totalOn;
    this.#watch = new FolderWatch(this.path, STATE_FILE);
  }

  /**
   * The newest committed checkpoint; where there is none, the empty one of generation 0. Grants of
   * an earlier boot are void and left out. Synchronous: two stats, and a read only where the file
   * has changed.
   * @throws ERR_STATE_FOLDER where the folder is closed to this process, ERR_STATE_CORRUPT where
   *   nothing can be told of a damaged state, ERR_STATE_VERSION, ERR_SYSCALL
   */
  read(): Checkpoint {
    const found = this.scope === 'memory' ? undefined : explaining(this.path, () => this.#read());
    return found ?? this.#emptyCheckpoint();
  }

  get found(): GoodState | undefined {
    return this.#open?.journal.good;
  }

  #emptyCheckpoint(): Checkpoint {
    this.#nothing ??= { generation: 0, bootId: '', writtenAt: '', assignments: this.#empty() };
    return this.#nothing;
  }

  #read(): Checkpoint | undefined {
    const open = this.#follow();
    if (!open) return undefined;
    const found = open.journal.look();
    if (found === this.#found) return this.#checkpoint;
    const checkpoint =
      found.kind === 'good' ? found.checkpoint : recovered(open.folder, found, open.owners, this.#totalOn);
    this.#checkpoint = checkpoint && ofThisBoot(checkpoint, open.owners);
    this.#found = found;
    return this.#checkpoint;
  }

  // The folder that is at the path now: it may be made, removed or replaced at any time.
  #follow(): Open | undefined {
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
    return explaining(this.path, () => {
      const owners = this.scope === 'memory' ? undefined : this.#follow()?.owners;
      return deadPods(owners, pods);
    });
  }

  #isProcessAlive(uuid: string): boolean {
    return explaining(this.path, () => {
      const owners = this.scope === 'memory' ? undefined : this.#follow()?.owners;
      return owners !== undefined && isLocked(owners, uuid);
    });
  }

  /** What `look` makes of a folder in the state folder; undefined where there is none. */
  lookInto<T>(name: string, look: (folder: NativeFolder, path: string) => T): T | undefined {
    return explaining(this.path, () => {
      const open = this.scope === 'memory' ? undefined : this.#follow();
      return open && withChild(open.folder, name, (folder) => folder && look(folder, join(this.path, name)));
    });
  }

  watch(listener: Listener, listening: Listening = {}): () => void {
    return this.scope === 'memory' ? () => {} : this.#watch.add(listener, listening);
  }

  /** Lets the folder go. The next read opens it again. */
  close(): void {
    this.#forget();
  }
}

function ofThisBoot(checkpoint: Checkpoint, owners: NativeFolder | undefined): Checkpoint {
  if (isOfBoot(checkpoint.bootId, readBootId(), owners)) return checkpoint;
  return { ...checkpoint, assignments: withoutPods(checkpoint.assignments) };
}
