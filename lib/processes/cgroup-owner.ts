// Cgroups as owners: checks that a cgroup is still the same one, and has a process.
import { realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CgroupIdentity } from '../account/pod-assignment.js';
import { invalidOption } from '../base/check-options.js';
import { errorName } from '../base/codes/errno.js';
import { linkOf, unlessThrown } from '../base/errors.js';
import { hasProcess, isCgroupFolder, readIfThere } from '../cgroups/files/cgroup-files.js';
import { INITIAL_CGROUP_NAMESPACE } from '../cgroups/files/cgroup-namespace.js';
import { mountOf } from '../cgroups/files/mounts.js';
import { INITIAL_PID_NAMESPACE } from './process-identity.js';

/** The text of /proc/self/ns; empty if the kernel has no such namespaces. */
export const namespaceOf = (kind: 'cgroup' | 'pid'): string => linkOf(`/proc/self/ns/${kind}`);

// kernfs: the inode of a hierarchy's root.
const ROOT = '1';

/**
 * True if a path is below a mount of the machine's whole hierarchy. In a container with one, it means
 * the same as on the machine, though the container has a cgroup namespace of its own.
 */
function isOnMachine(path: string): boolean {
  const point = mountOf(path)?.point;
  return point !== undefined && isCgroupFolder(point) && numbersOf(point)?.inode === ROOT;
}

/** True if a path of this cgroup namespace means the same here. */
export const isNamespaceHere = (namespace: string, path: string): boolean =>
  namespaceOf('cgroup') === namespace || (namespace === INITIAL_CGROUP_NAMESPACE && isOnMachine(path));

function namespaceAt(path: string): string {
  const own = namespaceOf('cgroup');
  return own !== '' && own !== INITIAL_CGROUP_NAMESPACE && isOnMachine(path) ? INITIAL_CGROUP_NAMESPACE : own;
}

// Undefined if nothing is there. Throws if it cannot be seen.
function numbersOf(path: string): Pick<CgroupIdentity, 'device' | 'inode'> | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && { device: String(found.dev), inode: String(found.ino) };
}

/** The cgroup with this folder; undefined if it is none. Throws if it cannot be seen. */
export function cgroupAt(folder: string): CgroupIdentity | undefined {
  const path = realpathSync(folder);
  return isCgroupFolder(path) ? { path, ...numbersOf(path)!, namespace: namespaceAt(path) } : undefined;
}

/**
 * Identifies the cgroup with this folder, as an owner.
 * @throws ERR_INVALID_OPTION if it is not a cgroup, or has no process in it or below it
 */
export function identifyCgroup(folder: string): CgroupIdentity {
  const valid = 'the absolute path of a cgroup with a process in it or below it';
  try {
    const found = cgroupAt(folder);
    if (!found) return invalidOption('owner.cgroup', folder, valid);
    if (!hasProcess(found.path)) invalidOption('owner.cgroup', folder, `${valid}: this one is empty`);
    return found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return invalidOption('owner.cgroup', folder, `${valid} (${errorName(error as NodeJS.ErrnoException)})`);
  }
}

/**
 * True if the path leads to this very cgroup, and not to a folder with files that look like one:
 * reading these could block.
 */
export function isCgroupHere({ path, device, inode }: CgroupIdentity): boolean {
  const numbers = numbersOf(path);
  return numbers?.device === device && numbers.inode === inode && isCgroupFolder(path);
}

/** True if a cgroup may have processes. Counts as alive if this process cannot tell. */
export function isCgroupAlive(cgroup: CgroupIdentity): boolean {
  return mayBeThere(cgroup, () => mayHaveProcess(cgroup.path));
}

/**
 * True if a cgroup, even an empty one, may still exist. Counts as existing if this process cannot
 * tell.
 */
export const mayCgroupBeThere = (cgroup: CgroupIdentity) => mayBeThere(cgroup, () => true);

function mayBeThere(cgroup: CgroupIdentity, whereHere: () => boolean): boolean {
  // The cgroup may have been removed between two looks. The next one tells.
  return unlessThrown(() => (isCgroupHere(cgroup) ? whereHere() : !isSeenWhole(cgroup)), true);
}

// If the list is not complete, an empty list proves nothing.
const mayHaveProcess = (path: string) => hasProcess(path) || !listsAllProcesses(path);

/**
 * True if a cgroup lists all its processes here. cgroup v1 leaves out processes that the pid
 * namespace does not see.
 */
export function listsAllProcesses(path: string): boolean {
  return (
    namespaceOf('pid') === INITIAL_PID_NAMESPACE || readIfThere(join(path, 'cgroup.events')) !== undefined
  );
}

/**
 * True if the path has the same meaning here as in the process that made the grant. Then a missing
 * cgroup is missing everywhere.
 */
function isSeenWhole({ path, device, namespace }: CgroupIdentity): boolean {
  let ancestor = path;
  while (!numbersOf(ancestor)) ancestor = dirname(ancestor);
  if (numbersOf(ancestor)?.device !== device || !isNamespaceHere(namespace, ancestor)) return false;
  return mountOf(ancestor)?.root === '/' || isOnMachine(ancestor);
}
