// Where the cpuset controller of cgroup v2 is enabled, and why it is not elsewhere.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt, cgroupRefusal } from '../files/cgroup-error.js';
import { readIfThere } from '../files/cgroup-files.js';
import type { CpusetTree } from './cpuset-group.js';

/** Only the root of the whole hierarchy lacks a type; that of a container has one. */
export function isRealRoot(folder: string): boolean {
  return !existsSync(join(folder, 'cgroup.type'));
}

/**
 * The folders above one that do not hand the cpuset controller on, outermost first. What is not
 * there yet does not.
 */
export function withoutCpuset({ mount }: Pick<CpusetTree, 'mount'>, path: string): string[] {
  const found: string[] = [];
  for (let folder = path; folder !== mount; ) {
    folder = dirname(folder);
    const file = join(folder, 'cgroup.subtree_control');
    const controllers = attempt('look', `read ${file}`, file, undefined, () => readIfThere(file));
    if (!controllers?.trim().split(' ').includes('cpuset')) found.unshift(folder);
  }
  return found;
}

/**
 * Why a folder cannot be told to hand the controller on, as far as can be seen before; undefined:
 * it may.
 */
export function whyNotEnabled(tree: Pick<CpusetTree, 'isOpen'>, folder: string): Error | undefined {
  const refuse = (reason: 'systemd-unit' | 'internal-processes', why: string, valid: string) =>
    cgroupRefusal(reason, `cannot enable the cpuset controller below ${folder}: ${why}; valid is ${valid}`, {
      path: join(folder, 'cgroup.subtree_control'),
      value: '+cpuset',
      valid,
    });
  if (!tree.isOpen(folder)) {
    return refuse(
      'systemd-unit',
      'systemd keeps this cgroup to itself',
      'a unit that systemd delegates the controller to (Delegate=cpuset)',
    );
  }
  // The kernel would take it, as cpuset is a threaded controller: cgroups below could then hold no
  // process.
  if (!isRealRoot(folder) && readIfThere(join(folder, 'cgroup.procs'))?.trim()) {
    return refuse(
      'internal-processes',
      'there are processes in it',
      'a cgroup whose processes are all in cgroups below it (systemd: DelegateSubgroup=)',
    );
  }
  return undefined;
}
