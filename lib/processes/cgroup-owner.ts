// Cgroups as owners: whether a cgroup still is the one that was meant, and whether a process is in
// it.
import { readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CgroupIdentity } from '../account/pod-assignment.js';
import { invalidOption } from '../base/check-options.js';
import { hasProcess, isCgroupFolder, readIfThere } from '../cgroups/files/cgroup-files.js';
import { mountOf } from '../cgroups/files/mounts.js';
import { INITIAL_PID_NAMESPACE } from './process-identity.js';

/** As /proc/self/ns reads; empty where the kernel has no such namespaces. */
export function namespaceOf(kind: 'cgroup' | 'pid'): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    // Kernels without such namespaces have one.
    return '';
  }
}

// Undefined where nothing is there; throws where that cannot be seen.
function numbersOf(path: string): Pick<CgroupIdentity, 'device' | 'inode'> | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && { device: String(found.dev), inode: String(found.ino) };
}

/**
 * The cgroup with this folder, as an owner.
 * @throws ERR_INVALID_OPTION where it is no cgroup, or nobody is in it or below it
 */
export function identifyCgroup(folder: string): CgroupIdentity {
  const valid = 'the absolute path of a cgroup with a process in it or below it';
  let path: string;
  try {
    path = realpathSync(folder);
    if (!isCgroupFolder(path)) invalidOption('owner.cgroup', folder, valid);
    if (!hasProcess(path)) invalidOption('owner.cgroup', folder, `${valid}: this one is empty`);
    return { path, ...numbersOf(path)!, namespace: namespaceOf('cgroup') };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return invalidOption('owner.cgroup', folder, `${valid} (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Whether the path leads to this very cgroup. */
export function isCgroupHere({ path, device, inode }: CgroupIdentity): boolean {
  const here = numbersOf(path);
  return here !== undefined && here.device === device && here.inode === inode;
}

/** Whether a cgroup may still be populated. What cannot be judged from here counts as alive. */
export function isCgroupAlive(cgroup: CgroupIdentity): boolean {
  return mayBeThere(cgroup, () => mayHaveProcess(cgroup.path));
}

/** Whether a cgroup, empty or not, may still be there. What cannot be judged counts as there. */
export const mayCgroupBeThere = (cgroup: CgroupIdentity) => mayBeThere(cgroup, () => true);

function mayBeThere(cgroup: CgroupIdentity, whereHere: () => boolean): boolean {
  try {
    return isCgroupHere(cgroup) ? whereHere() : !isSeenWhole(cgroup);
  } catch {
    // It may have gone between two looks: the next one will tell.
    return true;
  }
}

// Where not all are listed, an empty list says nothing.
const mayHaveProcess = (path: string) => hasProcess(path) || !listsAllProcesses(path);

/**
 * Whether a cgroup lists all its processes here: cgroup v1 leaves out those that a pid namespace
 * does not see.
 */
export function listsAllProcesses(path: string): boolean {
  return (
    namespaceOf('pid') === INITIAL_PID_NAMESPACE || readIfThere(join(path, 'cgroup.events')) !== undefined
  );
}

/**
 * Whether the path means here what it meant where the grant was made: then nothing there is nothing
 * anywhere.
 */
function isSeenWhole({ path, device, namespace }: CgroupIdentity): boolean {
  if (namespaceOf('cgroup') !== namespace) return false;
  let above = path;
  while (!numbersOf(above)) above = dirname(above);
  return numbersOf(above)?.device === device && mountOf(above)?.root === '/';
}
