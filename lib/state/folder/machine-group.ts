// MachineGroup: the group whose members share the machine's folder with root, and the parts of that
// folder that belong to another group.
import {
  accessSync,
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { shellWord } from '../../base/text/shell-word.js';

export const GROUP = 'numalign';
/** The machine's folder and new files in it belong to the group. */
export const MACHINE_MODE = 0o2770;

const LOCK = 'lock';
// The files and folders that every user of a state opens.
const PARTS = [LOCK, 'state.json', 'owners', 'members', 'waiting'];
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

// The lines of /etc/passwd or /etc/group, split.
const rowsOf = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split(':'));

function readGroup() {
  const [, , id, members = ''] = rowsOf('/etc/group').find(([name]) => name === GROUP) ?? [];
  return id === undefined ? undefined : { id: Number(id), members: members.split(',') };
}

/** -1 if the machine has no such group. */
export const groupId = () => readGroup()?.id ?? -1;

function groupOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.gid;
}

/**
 * The machine's folder, or the first part of it, that belongs to another group although the group
 * exists. Undefined if all is well, or this user cannot see.
 */
export function notTheGroups(folder: string): string | undefined {
  try {
    const id = groupId();
    const isOfOtherGroup = (path: string) => ![undefined, id].includes(groupOf(path));
    return id < 0 ? undefined : [folder, ...PARTS.map((name) => join(folder, name))].find(isOfOtherGroup);
  } catch {
    return undefined;
  }
}

/** The command with which root repairs {@link notTheGroups}. */
export function mendText(folder: string): string {
  const word = shellWord(folder);
  return `chgrp -R ${GROUP} ${word} && chmod 2770 ${word}`;
}

/** Explains why this user has no access, and gives the one command that repairs it. */
export function whyClosed(folder: string): string {
  const group = readGroup();
  const [user, name] = userNow();
  const join = `usermod -aG ${GROUP} ${shellWord(name ?? user)}`;
  const make = `install -d -m 2770 -g ${GROUP} ${shellWord(folder)}`;
  const advice = 'then log in again (open sessions do not get the group)';
  if (group === undefined) {
    const all = `groupadd -rf ${GROUP} && ${join} && ${make} && chgrp -R ${GROUP} ${shellWord(folder)}`;
    return `as root run \`${all}\`, ${advice}; now the machine has no group ${GROUP}, and only root may use the folder`;
  }
  if (![...process.getgroups!(), process.getegid!()].includes(group.id)) {
    const isNew = name !== undefined && group.members.includes(name);
    const reason = isNew
      ? `this process was started before user ${user} became one: log in again`
      : `user ${user} is not one: as root run \`${join}\`, ${advice}`;
    return `only root and members of the group ${GROUP} may use it, and ${reason}`;
  }
  const members = `members of the group ${GROUP} may use it, but`;
  if (groupOf(folder) === undefined) return `${members} it does not exist: as root run \`${make}\``;
  const path = notTheGroups(folder);
  const cause = path === undefined ? 'its modes do not let them in' : `${path} belongs to another group`;
  return `${members} ${cause}: as root run \`${mendText(folder)}\``;
}

function userNow(): [user: string, name: string | undefined] {
  const id = process.geteuid!();
  const name = rowsOf('/etc/passwd').find(([, , user]) => Number(user) === id)?.[0];
  return [name ?? String(id), name];
}

/**
 * The first part of the state folder that this user cannot read and write; undefined if there is
 * none.
 */
export function closedPart(folder: string): string | undefined {
  const { R_OK, W_OK } = constants;
  return PARTS.map((name) => join(folder, name)).find((path) => {
    if (!lstatSync(path, { throwIfNoEntry: false })) return false;
    try {
      accessSync(path, R_OK | W_OK);
      return false;
    } catch {
      return true;
    }
  });
}

/**
 * Gives the machine's folder to the group with this id (see {@link groupId}). Does so for a folder
 * that root made while the group did not exist. Changes only what belongs to root and root's group
 * and is not a link; modes stay. Changes the lock last, because the lock's group marks the work as
 * done. Does nothing without root or a group, or if the folder is not as numalign makes it.
 */
export function giveToGroup(folder: string, id: number): void {
  if (process.geteuid!() !== 0 || id <= 0) return;
  const { uid, gid, mode } = lstatSync(folder);
  if (uid !== 0 || (mode & 0o7777) !== MACHINE_MODE || ![0, id].includes(gid)) return;
  if (gid === id && [undefined, id].includes(groupOf(join(folder, LOCK)))) return;
  try {
    give(folder, id, 2);
  } catch {
    // The file system may be read-only. The doctor reports what belongs to another group.
  }
}

// Members can already write to the folder. So this opens everything from its parent, follows no
// links, and changes exactly what it checked.
function give(path: string, group: number, depth: number): void {
  const fd = openSync(path, FLAGS);
  try {
    const found = fstatSync(fd);
    if (found.uid !== 0 || !(found.isDirectory() || (found.isFile() && found.nlink === 1))) return;
    if (found.gid === 0) fchownSync(fd, 0, group);
    if (!found.isDirectory() || depth === 0) return;
    const inside = `/proc/self/fd/${fd}`;
    const names = readdirSync(inside).sort((a, b) => Number(a === LOCK) - Number(b === LOCK));
    for (const name of names) unlessRemoved(() => give(join(inside, name), group, depth - 1));
  } finally {
    closeSync(fd);
  }
}

// Other processes may change the folder meanwhile, and links are skipped.
function unlessRemoved(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!['ENOENT', 'ELOOP', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
