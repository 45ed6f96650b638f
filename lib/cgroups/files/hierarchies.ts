// Where a controller's cgroups are mounted, and what a path of /proc/PID/cgroup is there.
import { join } from 'node:path';
import { isCgroupFolder, readIfThere } from './cgroup-files.js';
import { isAtOrBelow, type Mount, mountOf, readMounts } from './mounts.js';

/** A mounted hierarchy with a certain controller. */
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly controller: string;
  readonly mount: Mount;
}

/**
 * The hierarchy that has a controller, v1 or v2, found by looking: a controller is in one of them
 * only. Undefined where none that can be seen has it.
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
  // The whole before a part of it.
  return found.find(({ mount }) => mount.root === '/') ?? found[0];
}

// Another mount above its point may hide it.
function isSeen({ point }: Mount): boolean {
  try {
    return isCgroupFolder(point);
  } catch {
    return false;
  }
}

/** The path of a process in a hierarchy by a text of /proc/PID/cgroup. */
export function pathIn(
  { version, controller }: Pick<Hierarchy, 'version' | 'controller'>,
  text: string,
): string | undefined {
  for (const line of text.split('\n')) {
    const [, id, controllers, path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    const isIt =
      version === 2 ? id === '0' && controllers === '' : controllers?.split(',').includes(controller);
    // So ends the line of a process that has ended, or whose cgroup was removed.
    if (isIt) return path!.replace(/ \(deleted\)$/, '');
  }
  return undefined;
}

/**
 * The folder of a path of /proc/PID/cgroup: both it and the mount's root count from this process's
 * cgroup namespace. Undefined where it is not mounted.
 */
export function folderOf({ mount }: Hierarchy, path: string): string | undefined {
  if (!isAtOrBelow(path, mount.root)) return undefined;
  const rest = path.slice(mount.root === '/' ? 0 : mount.root.length);
  return rest === '' || rest === '/' ? mount.point : mount.point + rest;
}
