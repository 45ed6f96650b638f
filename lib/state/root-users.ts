// RootUsers: the state folder that root uses a cgroup root for. Folders do not know of each other's
// grants: below one root each would take the other's CPUs for its own pool. So one has it at a time,
// on record in a file of root's, for as long as it has grants with cgroups there.
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PodAssignment } from '../account/pod-assignment.js';
import { unlessRefused } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import { commandIn } from '../input/values/machine-folder.js';
import { isOfBoot } from './files/owner-claims.js';
import { using } from './files/parts.js';
import { findState, LOCK_FILE, STATE_FILE } from './files/state-files.js';
import { CHOICES, fileNameOf, inRecords, type RootRefusal } from './folder/agreed-root.js';
import { hasState, identityOf, readBootId } from './folder/folder.js';
import { lockNote } from './owners/lock-holder.js';
import { deadPods, openExisting, withChild } from './read-only-store.js';
import type { RootClaims } from './store.js';

// The names of choices begin with that of `/`.
const PREFIX = 'user-of-';
const LOCK = 'lock';
const PAUSE_MS = 1;
const MOST_PAUSES = 50;

const nameOf = (cgroupRoot: string) => PREFIX + fileNameOf(cgroupRoot, PREFIX.length);

/** Changes with each new user. Undefined if there is none, or this process may not see it. */
function versionOf(cgroupRoot: string): string | undefined {
  if (process.geteuid!() !== 0) return undefined;
  try {
    const found = statSync(join(CHOICES, nameOf(cgroupRoot)), { throwIfNoEntry: false });
    return found && `${found.ino}:${found.mtimeMs}`;
  } catch {
    return undefined;
  }
}

/** For one state folder. */
export class RootUsers implements RootClaims {
  readonly #path: string;
  // By root: whether this folder was the user when its file had this version.
  readonly #known = new Map<string, { readonly version: string; readonly isOwn: boolean }>();

  /** `path`: the state folder. */
  constructor(path: string) {
    this.#path = path;
  }

  // Undefined if that is not known any more.
  #isOwn(cgroupRoot: string, version: string): boolean | undefined {
    const known = this.#known.get(cgroupRoot);
    return known?.version === version ? known.isOwn : undefined;
  }

  refusal(cgroupRoot: string): RootRefusal | undefined {
    const version = versionOf(cgroupRoot);
    const isOwn = version === undefined || this.#isOwn(cgroupRoot, version);
    if (version === undefined || isOwn) return undefined;
    const rival = unlessRefused(() => inRecords(false, (records) => this.#rival(records, cgroupRoot)));
    if (rival === undefined) this.#known.set(cgroupRoot, { version, isOwn: true });
    if (rival === undefined || (isOwn === undefined && !isUsed(rival, cgroupRoot))) return undefined;
    return {
      why: `the state folder ${rival} uses the cgroup root ${cgroupRoot}, and does not know of grants in ${this.#path}`,
      advice: `use that folder, or another root: ${commandIn(this.#path, `configure --cgroup-root ${cgroupRoot}-2`)}`,
    };
  }

  claim(cgroupRoot: string): void {
    const version = versionOf(cgroupRoot);
    if (process.geteuid!() !== 0 || (version !== undefined && this.#isOwn(cgroupRoot, version))) return;
    const take = (records: NativeFolder) =>
      holding(records, LOCK, MOST_PAUSES, () => {
        forgetGone(records);
        const become = () => {
          records.replace(nameOf(cgroupRoot), this.#path);
          return true;
        };
        const rival = this.#rival(records, cgroupRoot);
        if (rival === undefined) return become();
        // The lock is free when what a request has decided is on record.
        return inState(rival, (folder) =>
          holding(folder, LOCK_FILE, 0, () => !hasGrants(folder, cgroupRoot) && become()),
        );
      });
    const isOwn = unlessRefused(() => inRecords(true, take), false) === true;
    const now = versionOf(cgroupRoot);
    if (now !== undefined) this.#known.set(cgroupRoot, { version: now, isOwn });
  }

  // The other folder on record, if there is one.
  #rival(records: NativeFolder, cgroupRoot: string): string | undefined {
    const folder = records.read(nameOf(cgroupRoot))?.toString();
    return folder === undefined || identityOf(folder) === identityOf(this.#path) ? undefined : folder;
  }
}

/** Calls `action` under a lock; undefined if that is not free. */
function holding<T>(folder: NativeFolder, name: string, mostPauses: number, action: () => T): T | undefined {
  let lock = folder.tryLock(name, lockNote(), true);
  for (let pauses = 0; !lock && pauses < mostPauses; pauses++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    lock = folder.tryLock(name, lockNote(), true);
  }
  try {
    return lock && action();
  } finally {
    lock?.release();
  }
}

// Calls `look` with the folder of another state; undefined if that is gone.
function inState<T>(path: string, look: (folder: NativeFolder) => T): T | undefined {
  const folder = hasState(path) ? openExisting(path) : undefined;
  return folder && using(folder, look);
}

const isUsed = (path: string, cgroupRoot: string) =>
  unlessRefused(() => inState(path, (folder) => hasGrants(folder, cgroupRoot)), true) === true;

// Living ones with cgroups below the root. What cannot be read counts as some.
function hasGrants(folder: NativeFolder, cgroupRoot: string): boolean {
  const found = findState(folder, STATE_FILE);
  if (found.kind !== 'good') return true;
  const { bootId, assignments } = found.checkpoint;
  const { pods, settings } = assignments;
  return withChild(folder, 'owners', (owners) => {
    const dead = deadPods(owners, pods);
    const isLiving = (pod: PodAssignment) => pod.enforcement.target !== null && !dead.includes(pod);
    return (
      settings.cgroupRoot === cgroupRoot && isOfBoot(bootId, readBootId(), owners) && pods.some(isLiving)
    );
  });
}

function forgetGone(records: NativeFolder): void {
  for (const { name, folder } of usersIn(records)) if (!hasState(folder)) records.remove(name);
}

const usersIn = (records: NativeFolder) =>
  records
    .list()
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => ({ name, folder: records.read(name)?.toString() ?? '' }));

/**
 * Why a state folder may not use a cgroup root now, and what root can do, in words. Only root can see
 * that.
 */
export function cgroupRootRefusal(stateDir: string, cgroupRoot: string): string | undefined {
  const refusal = new RootUsers(stateDir).refusal(cgroupRoot);
  return refusal && `${refusal.why}: ${refusal.advice}`;
}

/** Removes what root has on record about a state folder that is gone. */
export function forgetFolder(path: string): void {
  inRecords(false, (records) => {
    records.remove(fileNameOf(path));
    for (const { name, folder } of usersIn(records)) if (folder === path) records.remove(name);
    // Other folders may have choices there.
    if (records.list().every((name) => name === LOCK)) rmSync(CHOICES, { recursive: true });
  });
}
