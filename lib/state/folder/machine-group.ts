// MachineGroup: the group whose members share the machine's folder with root, and what of that
// folder it does not have.
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
/** The machine's folder belongs to its group, new files in it too. */
export const MACHINE_MODE = 0o2770;

const LOCK = 'lock';
// What every user of a state opens.
const PARTS = [LOCK, 'state.json', 'owners', 'members', 'waiting'];
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

interface Group {
  readonly id: number;
  readonly members: readonly string[];
}

function readGroup(): Group | undefined {
  const [, , id, members = ''] =
    readFileSync('/etc/group', 'utf8')
      .split('\n')
      .find((line) => line.startsWith(`${GROUP}:`))
      ?.split(':') ?? [];
  return id === undefined ? undefined : { id: Number(id), members: members.split(',') };
}

/** -1 where the machine has no such group. */
export const groupId = () => readGroup()?.id ?? -1;

function groupOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.gid;
}

/**
 * What of the machine's folder does not belong to the group, though the machine has one: the folder
 * itself, or the first of what is in it. Undefined where nothing is amiss, or it cannot be seen
 * from here.
 */
export function notTheGroups(folder: string): string | undefined {
  try {
    const id = groupId();
    const isElses = (path: string) => ![undefined, id].includes(groupOf(path));
    return id < 0 ? undefined : [folder, ...PARTS.map((name) => join(folder, name))].find(isElses);
  } catch {
    return undefined;
  }
}

/** How root mends {@link notTheGroups} by hand. */
export function mendText(folder: string): string {
  const word = shellWord(folder);
  return `chgrp -R ${GROUP} ${word} && chmod 2770 ${word}`;
}

/** Why this user, who is not let in, is not, and the one command that mends it. */
export function whyClosed(folder: string): string {
  const group = readGroup();
  const [user, name] = userNow();
  const join = `usermod -aG ${GROUP} ${shellWord(name ?? user)}`;
  const make = `install -d -m 2770 -g ${GROUP} ${shellWord(folder)}`;
  const again = 'then log in again: a session that is open stays without the group';
  if (group === undefined) {
    const all = `groupadd -rf ${GROUP} && ${join} && ${make} && chgrp -R ${GROUP} ${shellWord(folder)}`;
    return `only root may use it, for the machine has no group ${GROUP}: as root \`${all}\`, ${again}`;
  }
  if (![...(process.getgroups?.() ?? []), process.getegid?.()].includes(group.id)) {
    const isNew = name !== undefined && group.members.includes(name);
    const who = isNew
      ? `this process was started before user ${user} became one: log in again`
      : `user ${user} is none: as root \`${join}\`, ${again}`;
    return `only root and members of the group ${GROUP} may use it, and ${who}`;
  }
  const members = `members of the group ${GROUP} may use it, but`;
  if (groupOf(folder) === undefined) return `${members} it is not there: as root \`${make}\``;
  const path = notTheGroups(folder);
  const cause = path === undefined ? 'its modes do not let them in' : `${path} belongs to another group`;
  return `${members} ${cause}: as root \`${mendText(folder)}\``;
}

function userNow(): [user: string, name: string | undefined] {
  const id = process.geteuid?.() ?? 0;
  const name = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([, , user]) => Number(user) === id)?.[0];
  return [name ?? String(id), name];
}

/**
 * The first of what every user of a state opens that this user cannot read and write; undefined
 * where there is none.
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
 * Has the group of this id (see {@link groupId}) have the machine's folder that root made while
 * there was no such group: as a new one would be. Only what is root's, of root's group, and no link
 * under a second name; modes stay. The lock comes last: by it is told that it was done. Does
 * nothing where this is not root, or the folder is not as numalign makes it.
 */
export function giveToGroup(folder: string, id: number): void {
  if (process.geteuid?.() !== 0 || id <= 0) return;
  const { uid, gid, mode } = lstatSync(folder);
  if (uid !== 0 || (mode & 0o7777) !== MACHINE_MODE || ![0, id].includes(gid)) return;
  if (gid === id && [undefined, id].includes(groupOf(join(folder, LOCK)))) return;
  try {
    give(folder, id, 2);
  } catch {
    // A file system that is read-only, say. The doctor tells what is not the group's.
  }
}

// Members may write to the folder already: everything is opened from the folder above it, no link
// is followed, and what is changed is what was looked at.
function give(path: string, group: number, depth: number): void {
  const fd = openSync(path, FLAGS);
  try {
    const found = fstatSync(fd);
    if (found.uid !== 0 || !(found.isDirectory() || (found.isFile() && found.nlink === 1))) return;
    if (found.gid === 0) fchownSync(fd, 0, group);
    if (!found.isDirectory() || depth === 0) return;
    const inside = `/proc/self/fd/${fd}`;
    const names = readdirSync(inside).sort((a, b) => Number(a === LOCK) - Number(b === LOCK));
    for (const name of names) giveUnlessGone(join(inside, name), group, depth - 1);
  } finally {
    closeSync(fd);
  }
}

// Others may be at work there, and a link is none of ours.
function giveUnlessGone(path: string, group: number, depth: number): void {
  try {
    give(path, group, depth);
  } catch (error) {
    if (!['ENOENT', 'ELOOP', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
