// RootUsers: the state folders that root uses cgroup roots for. Folders do not know of each other's
// grants: below one root, or on the same CPUs, each would take the other's for its own pool. So one
// has them at a time, on record in a file of root's, for as long as it has grants with cgroups.
// Other users, and builds before that record, leave none: the processes in cgroups of their grants
// show them.
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeFolder } from '../base/native-files.js';
import { type CpusetHierarchy, openCpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { FolderMadeGroups } from '../cgroups/files/made-groups.js';
import { commandIn } from '../input/values/machine-folder.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { isOfBoot } from './files/owner-claims.js';
import { using } from './files/parts.js';
import { findState, LOCK_FILE, STATE_FILE } from './files/state-files.js';
import { CHOICES, fileNameOf, inRecords, type RootRefusal } from './folder/agreed-root.js';
import { openExisting, withChild } from './folder/existing.js';
import { hasState, identityOf, readBootId } from './folder/folder.js';
import type { Checkpoint } from './format/checkpoint.js';
import { lockNote } from './owners/lock-holder.js';
import { deadPods } from './read-only-store.js';
import type { Claim, RootClaims } from './store.js';

// The names of choices begin with that of `/`.
const PREFIX = 'user-of-';
const LOCK = 'lock';
const PAUSE_MS = 1;
const MOST_PAUSES = 50;
// Others come to use a root rarely, and processes ask for it at each change.
const LOOK_LASTS_MS = 1000;

const nameOf = (cgroupRoot: string) => PREFIX + fileNameOf(cgroupRoot, PREFIX.length);

/** Of root. `name`: that of its file; `folder`: its content. */
interface User {
  readonly name: string;
  readonly folder: string;
}

/**
 * Changes with the record of this root: who becomes its user, or a rival, takes away what is there.
 * Undefined if there is none, or this process may not see it.
 */
function versionOf({ cgroupRoot, managedCPUs }: Claim): string | undefined {
  if (process.geteuid!() !== 0) return undefined;
  try {
    const found = statSync(join(CHOICES, nameOf(cgroupRoot!)), { throwIfNoEntry: false });
    return found && `${found.ino}:${found.mtimeMs}:${managedCPUs}`;
  } catch {
    return undefined;
  }
}

/** For one state folder. */
export class RootUsers implements RootClaims {
  // Whether this folder was the user when the record had this version.
  #known: { version?: string | undefined; isOwn?: boolean | undefined } = {};
  // A group of a grant that is not on record here, and when that was seen.
  #strange: { cgroupRoot?: string; group?: string | undefined; at: number } = { at: 0 };
  // Until the next microtask.
  #answer: (Claim & { readonly refusal: RootRefusal | undefined }) | undefined;

  /** `path`: the state folder. */
  constructor(private readonly path: string) {}

  // Undefined if that is not known, or not any more.
  #isOwn(version: string | undefined): boolean | undefined {
    return this.#known.version === version ? this.#known.isOwn : undefined;
  }

  /** Synchronous code gets the same answer until {@link claim}: each change asks ten times. */
  refusal({ cgroupRoot, managedCPUs }: Claim): RootRefusal | undefined {
    const last = this.#answer;
    if (last?.cgroupRoot === cgroupRoot && last.managedCPUs === managedCPUs) return last.refusal;
    const refusal = this.#refusalNow({ cgroupRoot, managedCPUs });
    this.#answer = { cgroupRoot, managedCPUs, refusal };
    void Promise.resolve().then(() => (this.#answer = undefined));
    return refusal;
  }

  #refusalNow(claim: Claim): RootRefusal | undefined {
    const why = this.#whyNot(claim, versionOf(claim));
    const command = commandIn(this.path, `configure --cgroup-root ${claim.cgroupRoot}-2 --managed LIST`);
    const advice = `use one state folder for both, or other CPUs and another root: ${command}`;
    return why === undefined ? undefined : { why, advice };
  }

  #whyNot(claim: Claim, version: string | undefined): string | undefined {
    const isOwn = this.#isOwn(version);
    if (isOwn) return undefined;
    // Others than root could not open the records.
    const isRoot = process.geteuid!() === 0;
    const users = (isRoot && unlessRefused(() => inRecords(false, usersIn))) || [];
    const rivals = users.filter((user) => this.#isRival(user, claim));
    const name = nameOf(claim.cgroupRoot!);
    if (version && rivals.length === 0 && users.some((user) => user.name === name)) {
      this.#known = { version, isOwn: true };
      return undefined;
    }
    const rival = isOwn === false ? rivals[0] : rivals.find(isUsed);
    const use =
      rival?.name === name ? `uses the cgroup root ${claim.cgroupRoot}` : 'enforces on the same CPUs';
    if (rival) return `the state folder ${rival.folder} ${use}, and does not know of grants in ${this.path}`;
    const group = this.#strangeGroup(claim.cgroupRoot!);
    return group && `processes run in ${group}, the cgroup of a grant that is not on record in ${this.path}`;
  }

  claim({ settings, pods }: Assignments, hierarchy: CpusetHierarchy): void {
    this.#answer = undefined;
    const cgroupRoot = settings.cgroupRoot!;
    if (this.#isOwn(versionOf(settings))) return;
    const group = strangeGroup(hierarchy, () => pods);
    this.#strange = { cgroupRoot, group, at: performance.now() };
    if (process.geteuid!() !== 0) return;
    const become = (records: NativeFolder) => {
      for (const { name, folder } of usersIn(records)) if (!hasState(folder)) records.remove(name);
      const rivals = usersIn(records).filter((user) => this.#isRival(user, settings));
      const isFree = rivals.every((rival) => dismiss(records, rival));
      if (isFree) records.replace(nameOf(cgroupRoot), this.path);
      return isFree;
    };
    const take = (records: NativeFolder) => holding(records, LOCK, () => become(records));
    const isOwn = group === undefined && unlessRefused(() => inRecords(true, take), false);
    this.#known = { version: versionOf(settings), isOwn };
  }

  // Another folder, on record for this root or for some of the same CPUs.
  #isRival({ name, folder }: User, { cgroupRoot, managedCPUs: own }: Claim): boolean {
    if (identityOf(folder) === identityOf(this.path)) return false;
    if (name === nameOf(cgroupRoot!) || own === null) return true;
    const managed = unlessRefused(() => inState(folder, checkpointIn))?.assignments.settings.managedCPUs;
    return !managed || own.intersects(managed);
  }

  #strangeGroup(cgroupRoot: string): string | undefined {
    const known = this.#strange;
    if (known.cgroupRoot === cgroupRoot && performance.now() - known.at < LOOK_LASTS_MS) return known.group;
    const made = () => native.Folder.open(join(this.path, 'cgroups'), false, 0, -1);
    const pods = () => inState(this.path, checkpointIn)?.assignments.pods ?? [];
    const group = unlessRefused(() =>
      strangeGroup(openCpusetHierarchy(cgroupRoot, new FolderMadeGroups(made)), pods),
    );
    this.#strange = { cgroupRoot, group, at: performance.now() };
    return group;
  }
}

/** Calls `action` under a lock; undefined if that is not free. */
function holding<T>(folder: NativeFolder, name: string, action: () => T): T | undefined {
  let lock = folder.tryLock(name, lockNote(), true);
  for (let pauses = 0; !lock && pauses < MOST_PAUSES; pauses++) {
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
function strangeGroup(hierarchy: CpusetHierarchy, pods: () => readonly PodAssignment[]): string | undefined {
  const names = unlessRefused(() => hierarchy.list(), []).filter((name) => name.includes('/'));
  const own = new Set<string>(names.length > 0 ? pods().map(({ uid }) => uid) : []);
  return names
    .filter((name) => !own.has(name.slice(0, name.lastIndexOf('/'))))
    .map((name) => hierarchy.group(name))
    .find((group) => unlessRefused(() => group.isPopulated() && !group.isMade(), true))?.path;
}

const isUsed = (user: User) =>
  unlessRefused(() => inState(user.folder, (folder) => hasGrants(folder, user)), true) === true;

// Takes a user without grants off the record. Its lock is free when what a request has decided is on
// record.
function dismiss(records: NativeFolder, user: User): boolean | undefined {
  return inState(user.folder, (folder) =>
    holding(folder, LOCK_FILE, () => {
      if (hasGrants(folder, user)) return false;
      records.remove(user.name);
      return true;
    }),
  );
}

function checkpointIn(folder: NativeFolder): Checkpoint | undefined {
  const found = findState(folder, STATE_FILE);
  return found.kind === 'good' ? found.checkpoint : undefined;
}

// Living ones with cgroups below the root. What cannot be read counts as some.
function hasGrants(folder: NativeFolder, { name }: User): boolean {
  const checkpoint = checkpointIn(folder);
  if (!checkpoint) return true;
  const { bootId, assignments } = checkpoint;
  const { pods, settings } = assignments;
  return withChild(folder, 'owners', (owners) => {
    const dead = deadPods(owners, pods);
    const isLiving = (pod: PodAssignment) => pod.enforcement.target !== null && !dead.includes(pod);
    const isOfRoot = settings.cgroupRoot !== null && nameOf(settings.cgroupRoot) === name;
    return isOfRoot && isOfBoot(bootId, readBootId(), owners) && pods.some(isLiving);
  });
}

const usersIn = (records: NativeFolder): User[] =>
  records
    .list()
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => ({ name, folder: records.read(name)?.toString() ?? '' }));

/**
 * Why a state folder may not use a cgroup root now, and what root can do, in words. Only root sees
 * which folder has it.
 */
export function cgroupRootRefusal(stateDir: string, cgroupRoot: string, managedCPUs: CpuSet | null) {
  const refusal = new RootUsers(stateDir).refusal({ cgroupRoot, managedCPUs });
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
