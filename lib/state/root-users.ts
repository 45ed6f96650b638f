// RootUsers: the state folders that root uses a cgroup root for. Folders do not know of each other's
// grants: below one root, each would take the other's CPUs for its own pool. So one at a time uses it.
import { statSync } from 'node:fs';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeFolder, NativeOwner } from '../base/native-files.js';
import { commandIn, MACHINE_STATE_DIR } from '../input/values/machine-folder.js';
import { using } from './files/parts.js';
import { inRecords } from './folder/agreed-root.js';
import { hasState } from './folder/folder.js';
import { ReadOnlyStore } from './read-only-store.js';

/** A file of a process, which locks it while it lives. A grant of the folder may live on. */
interface Use {
  readonly folder: string;
  /** The folder under any path. */
  readonly id: string;
  readonly cgroupRoot: string;
}

function idOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

const USERS = 'users';
const MODE = 0o700;

export class RootUsers {
  readonly #path: string;
  readonly #scope: 'machine' | 'private';
  readonly #uses = new Map<string, { readonly name: string; readonly lock: NativeOwner }>();

  /** `path`: the state folder. */
  constructor(path: string, scope: 'machine' | 'private') {
    this.#path = path;
    this.#scope = scope;
  }

  /**
   * Why this folder may not use a cgroup root: another one does. Otherwise a private folder has it
   * until {@link release}, and as long as it has grants. The machine's folder takes none: a private
   * one stays away from what is its choice.
   */
  refusal(cgroupRoot: string): string | undefined {
    if (process.geteuid!() !== 0 || this.#uses.has(cgroupRoot)) return undefined;
    const folder = inRecords(true, (records) => this.#take(records, cgroupRoot));
    if (folder === undefined) return undefined;
    const advice = commandIn(this.#path, 'configure --cgroup-root /numalign-2');
    return `the state folder ${folder} uses the cgroup root ${cgroupRoot}, and does not know of grants in ${this.#path}: use that folder, or another root: ${advice}`;
  }

  // The folder that has it; undefined if this one may have it.
  #take(records: NativeFolder, cgroupRoot: string): string | undefined {
    return using(records.child(USERS, true, MODE, -1), (users) =>
      holding(users, () => {
        const id = idOf(this.#path);
        for (const name of users.list()) {
          const use = useIn(users, name);
          if (!use) continue;
          const isOwn = use.id === id;
          if (!users.isOwnerAlive(name) && (isOwn || !hasGrants(use.folder))) users.remove(name);
          else if (!isOwn && use.cgroupRoot === cgroupRoot) return use.folder;
        }
        if (this.#scope === 'machine') return undefined;
        if (rootOf(MACHINE_STATE_DIR) === cgroupRoot) return MACHINE_STATE_DIR;
        const name = native.randomUuid();
        const use: Use = { folder: this.#path, id, cgroupRoot };
        this.#uses.set(cgroupRoot, { name, lock: users.createOwner(name, JSON.stringify(use)) });
        return undefined;
      }),
    );
  }

  /** The folder is not in use here any more. */
  release(): void {
    if (this.#uses.size === 0) return;
    const names = hasGrants(this.#path) ? [] : [...this.#uses.values()].map(({ name }) => name);
    for (const { lock } of this.#uses.values()) lock.close();
    this.#uses.clear();
    const remove = (users: NativeFolder) => {
      for (const name of names) users.remove(name);
    };
    unlessRefused(() => inRecords(false, (records) => using(records.child(USERS, false, MODE, -1), remove)));
  }
}

const PAUSE_MS = 1;
const MOST_PAUSES = 100;
const LOCK = 'lock';

/**
 * Calls `action` under the lock of the list, which each has for less than a millisecond.
 * @throws ERR_LOCK_TIMEOUT if a process was stopped then
 */
function holding<T>(users: NativeFolder, action: () => T): T {
  let lock = users.tryLock(LOCK, '');
  for (let pauses = 0; !lock && pauses < MOST_PAUSES; pauses++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    lock = users.tryLock(LOCK, '', true);
  }
  if (!lock)
    throw new NumalignError(
      'ERR_LOCK_TIMEOUT',
      `the list of users of cgroup roots in ${USERS} stays locked`,
      {
        ...{ holder: '', pid: null, stopped: false },
        lockTimeoutMs: PAUSE_MS * MOST_PAUSES,
      },
    );
  try {
    return action();
  } finally {
    lock.release();
  }
}

// Undefined for the lock, and for a file that is damaged.
function useIn(users: NativeFolder, name: string): Use | undefined {
  try {
    return JSON.parse(users.read(name)?.toString() ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/** Calls `look` with what is on record in a folder; undefined if that is nothing, or unreadable. */
function lookInto<T>(path: string, look: (store: ReadOnlyStore) => T): T | undefined {
  const nothing = () => {
    throw new NumalignError('ERR_STATE_FOLDER', `the state in ${path} was removed`, {
      value: path,
      valid: 'a folder that stays',
    });
  };
  return unlessRefused(() => {
    if (!hasState(path)) return undefined;
    const store = new ReadOnlyStore(path, nothing, () => 0);
    try {
      return look(store);
    } finally {
      store.close();
    }
  });
}

const rootOf = (path: string) => lookInto(path, (store) => store.read().assignments.settings.cgroupRoot);

const hasGrants = (path: string): boolean =>
  lookInto(path, (store) => {
    const { pods } = store.read().assignments;
    return store.owners.deadPods(pods).length < pods.length;
  }) ?? false;
