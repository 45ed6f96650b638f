// Finds the mounted hierarchy of a controller, and the folder of a path in /proc/PID/cgroup.

import { join } from 'node:path';
import { unlessThrown } from '../../base/errors.js';
import { cgroupRefusal } from './cgroup-error.js';
import { isCgroupFolder, readIfThere } from './cgroup-files.js';
import { isAtOrBelow, type Mount, mountOf, readMounts } from './mounts.js';

/** A mounted hierarchy with a certain controller. */
export interface Hierarchy {
  /** Of the kernel's interface. */
  readonly version: 1 | 2;
  /** The name of the controller. */
  readonly controller: string;
  /** Where it is mounted. */
  readonly mount: Mount;
}

/**
 * Finds the hierarchy of a controller, v1 or v2. A controller is in only one of them. Undefined if
 * no visible hierarchy has it.
 */
export function findHierarchy(controller: string): Hierarchy | undefined {
  const mounts = readMounts();
  const found: Hierarchy[] = [];
  for (const mount of mounts) {
    if (!mount.type.startsWith('cgroup') || mountOf(mount.point, mounts) !== mount) continue;
    const version = mount.type === 'cgroup2' ? 2 : 1;
    const controllers =
      version === 1 ? mount.options : readIfThere(join(mount.point, 'cgroup.controllers'))?.trim().split(' ');
    if (controllers?.includes(controller) && isSeen(mount)) found.push({ version, controller, mount });
  }
  // Prefers a mount of the whole hierarchy to a mount of a part.
  return found.find(({ mount }) => mount.root === '/') ?? found[0];
}

/**
 * The same, for what needs the controller. `value`: what asks for it.
 * @throws ERR_CGROUP (`none`) if no visible hierarchy has it
 */
export function neededHierarchy(controller: string, value: unknown = controller): Hierarchy {
  const hierarchy = findHierarchy(controller);
  if (hierarchy) return hierarchy;
  const valid = `a machine or container with /sys/fs/cgroup mounted and the ${controller} controller in it`;
  const message = `no cgroup hierarchy with the ${controller} controller is mounted here`;
  throw cgroupRefusal('none', message, { value, valid });
}

// False if another mount above the point hides it.
function isSeen({ point }: Mount): boolean {
  return unlessThrown(() => isCgroupFolder(point), false);
}

/** The path of a process in a hierarchy, from the text of /proc/PID/cgroup. */
export function pathIn(
  { version, controller }: Pick<Hierarchy, 'version' | 'controller'>,
  text: string,
): string | undefined {
  for (const line of text.split('\n')) {
    const [id, controllers, ...path] = line.split(':');
    const isIt =
      version === 2 ? id === '0' && controllers === '' : controllers?.split(',').includes(controller);
    // The line of an ended process, or of a removed cgroup.
    if (isIt) return withoutEnd(path.join(':'), ' (deleted)');
  }
  return undefined;
}

const withoutEnd = (text: string, end: string) => (text.endsWith(end) ? text.slice(0, -end.length) : text);

/**
 * The folder of a path from /proc/PID/cgroup. Both the path and the mount's root start at this
 * process's cgroup namespace. Undefined if the path is not mounted.
 */
export function folderOf({ mount }: Hierarchy, path: string): string | undefined {
  if (!isAtOrBelow(path, mount.root)) return undefined;
  const rest = path.slice(mount.root === '/' ? 0 : mount.root.length);
  return rest === '' || rest === '/' ? mount.point : mount.point + rest;
}
