// The machine's group and folder: whether `numalign setup --remove` may remove them.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { GROUP } from '../../systemd/service-unit.js';
import { textOf } from './machine-files.js';

const rows = (root: string, path: string) =>
  (textOf(join(root, path)) ?? '').split('\n').map((line) => line.split(':'));

function readGroup(root: string) {
  const [, , id, members = ''] = rows(root, '/etc/group').find(([name]) => name === GROUP) ?? [];
  return id === undefined ? undefined : { id, members: members.split(',').filter((each) => each !== '') };
}

export const hasGroup = (root: string) => readGroup(root) !== undefined;

/**
 * The users of the group: its members, and users with this primary group. Undefined without a
 * group.
 */
export function membersOf(root: string): readonly string[] | undefined {
  const group = readGroup(root);
  if (group === undefined) return undefined;
  const users = rows(root, '/etc/passwd').flatMap(([name, , , id]) => (id === group.id ? [name!] : []));
  return [...new Set([...group.members, ...users])];
}

/** True if a state is in the folder, or it cannot be read; undefined without a folder. */
export function hasState(folder: string): boolean | undefined {
  try {
    return readdirSync(folder).length > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    return true;
  }
}
