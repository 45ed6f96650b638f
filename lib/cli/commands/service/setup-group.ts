// The machine's group and folder, as `numalign setup --remove` may or may not take them away.
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

/** Who is in the group, as its members or by their own group; undefined where there is no group. */
export function membersOf(root: string): readonly string[] | undefined {
  const group = readGroup(root);
  if (group === undefined) return undefined;
  const users = rows(root, '/etc/passwd').flatMap(([name, , , id]) => (id === group.id ? [name!] : []));
  return [...new Set([...group.members, ...users])];
}

/** True if a state is in the folder; undefined where there is no folder. */
export function hasState(folder: string): boolean | undefined {
  try {
    return readdirSync(folder).length > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    return true;
  }
}
