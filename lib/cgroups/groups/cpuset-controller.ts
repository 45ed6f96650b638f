// Finds where the cpuset controller of cgroup v2 is enabled, and why it is not.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { cgroupRefusal, look } from '../files/cgroup-error.js';
import { readIfThere } from '../files/cgroup-files.js';
import type { CpusetTree } from './cpuset-tree.js';

/** True for the root of the whole hierarchy, which has no type. A container's root has one. */
export function isRealRoot(folder: string): boolean {
  return !existsSync(join(folder, 'cgroup.type'));
}

/**
 * The folders above a path that do not enable the cpuset controller, outermost first. A missing
 * folder does not.
 */
export function withoutCpuset({ mount }: Pick<CpusetTree, 'mount'>, path: string): string[] {
  const found: string[] = [];
  for (let folder = path; folder !== mount; ) {
    folder = dirname(folder);
    const file = join(folder, 'cgroup.subtree_control');
    const controllers = look(file, () => readIfThere(file));
    if (!controllers?.trim().split(' ').includes('cpuset')) found.unshift(folder);
  }
  return found;
}

/** Why a folder cannot enable the controller, as far as visible beforehand; undefined if it may. */
export function whyNotEnabled(tree: Pick<CpusetTree, 'isOpen'>, folder: string): Error | undefined {
  const refuse = (reason: 'systemd-unit' | 'internal-processes', why: string, valid: string) =>
    cgroupRefusal(reason, `cannot enable the cpuset controller below ${folder}: ${why}`, {
      path: join(folder, 'cgroup.subtree_control'),
      value: '+cpuset',
      valid,
    });
  if (!tree.isOpen(folder)) {
    return refuse(
      'systemd-unit',
      'systemd manages this cgroup itself',
      'a unit to which systemd delegates the controller (Delegate=cpuset)',
    );
  }
  // The kernel would allow it, because cpuset is a threaded controller. But cgroups below could
  // then hold no process.
  if (!isRealRoot(folder) && readIfThere(join(folder, 'cgroup.procs'))?.trim()) {
    return refuse(
      'internal-processes',
      'it has processes',
      'a cgroup whose processes are all in cgroups below it (systemd: DelegateSubgroup=)',
    );
  }
  return undefined;
}
