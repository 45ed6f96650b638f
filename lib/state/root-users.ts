// RootUsers: the state folder that root uses a cgroup root for. Folders do not know of each other's
// grants: below one root each would take the other's CPUs for its own pool. So one has it at a time,
// on record in a file of root's, for as long as it has grants with cgroups there. Other users, and
// builds before that record, leave none: the processes in cgroups of their grants show them.
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PodAssignment } from '../account/pod-assignment.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeFolder } from '../base/native-files.js';
import { type CpusetHierarchy, openCpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { FolderMadeGroups } from '../cgroups/files/made-groups.js';
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
// Others come to use a root rarely, and processes ask for it at each change.
const LOOK_LASTS_MS = 1000;

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
  // By root: a group of a grant that is not on record here, and when that was seen.
  readonly #strange = new Map<string, { readonly group: string | undefined; readonly at: number }>();

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
    const isOwn = version === undefined ? undefined : this.#isOwn(cgroupRoot, version);
    if (isOwn) return undefined;
    const rival =
      version && unlessRefused(() => inRecords(false, (records) => this.#rival(records, cgroupRoot)));
    if (version !== undefined && rival === undefined) {
      this.#known.set(cgroupRoot, { version, isOwn: true });
      return undefined;
    }
    if (rival && (isOwn === false || isUsed(rival, cgroupRoot))) {
      return {
        why: `the state folder ${rival} uses the cgroup root ${cgroupRoot}, and does not know of grants in ${this.#path}`,
        advice: `use that folder, or ${this.#otherRoot(cgroupRoot)}`,
      };
    }
    const group = this.#strangeGroup(cgroupRoot);
    if (group === undefined) return undefined;
    return {
      why: `processes run in ${group}, the cgroup of a grant that is not on record in ${this.#path}`,
      advice: `use the state folder that has it, or ${this.#otherRoot(cgroupRoot)}`,
    };
  }

  claim(cgroupRoot: string, pods: readonly PodAssignment[], hierarchy: CpusetHierarchy): void {
    const version = versionOf(cgroupRoot);
    if (version !== undefined && this.#isOwn(cgroupRoot, version)) return;
    const group = strangeGroup(hierarchy, pods);
    this.#strange.set(cgroupRoot, { group, at: performance.now() });
    if (process.geteuid!() !== 0) return;
    const become = (records: NativeFolder) => {
      if (group !== undefined) return undefined;
      records.replace(nameOf(cgroupRoot), this.#path);
      return true;
    };
    const take = (records: NativeFolder) =>
      holding(records, LOCK, MOST_PAUSES, () => {
        forgetGone(records);
        const rival = this.#rival(records, cgroupRoot);
        if (rival === undefined) return become(records);
        // The lock is free when what a request has decided is on record.
        return inState(rival, (folder) =>
          holding(folder, LOCK_FILE, 0, () => !hasGrants(folder, cgroupRoot) && become(records)),
        );
      });
    const isOwn = unlessRefused(() => inRecords(true, take), false);
    const now = versionOf(cgroupRoot);
    if (now === undefined || isOwn === undefined) this.#known.delete(cgroupRoot);
    else this.#known.set(cgroupRoot, { version: now, isOwn });
  }

  #otherRoot(cgroupRoot: string): string {
    return `another root: ${commandIn(this.#path, `configure --cgroup-root ${cgroupRoot}-2`)}`;
  }

  #strangeGroup(cgroupRoot: string): string | undefined {
    const known = this.#strange.get(cgroupRoot);
    if (known && performance.now() - known.at < LOOK_LASTS_MS) return known.group;
    const made = () => native.Folder.open(join(this.#path, 'cgroups'), false, 0, -1);
    const group = unlessRefused(() => {
      const hierarchy = openCpusetHierarchy(cgroupRoot, new FolderMadeGroups(made));
      return strangeGroup(hierarchy) && strangeGroup(hierarchy, inState(this.#path, podsIn));
    });
    this.#strange.set(cgroupRoot, { group, at: performance.now() });
    return group;
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

// A group with processes, of a grant that is none of these. A process that its grant has left behind
// is in a group that this state has made.
function strangeGroup(hierarchy: CpusetHierarchy, pods: readonly PodAssignment[] = []): string | undefined {
  const names = unlessRefused(() => hierarchy.list(), []).filter((name) => name.includes('/'));
  if (names.length === 0) return undefined;
  const own = new Set<string>(pods.map(({ uid }) => uid));
  return names
    .filter((name) => !own.has(name.slice(0, name.lastIndexOf('/'))))
    .map((name) => hierarchy.group(name))
    .find((group) => unlessRefused(() => group.isPopulated() && !group.isMade(), true))?.path;
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

function podsIn(folder: NativeFolder): readonly PodAssignment[] {
  const found = findState(folder, STATE_FILE);
  return found.kind === 'good' ? found.checkpoint.assignments.pods : [];
}

const usersIn = (records: NativeFolder) =>
  records
    .list()
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => ({ name, folder: records.read(name)?.toString() ?? '' }));

/**
 * Why a state folder may not use a cgroup root now, and what root can do, in words. Only root sees
 * which folder has it.
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
