// Cgroups as owners: whether a cgroup still is the one that was meant, and whether a process is in it.
import { readdirSync, readFileSync, readlinkSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { invalidOption } from '../check-options.js';
import type { CgroupIdentity } from './assignments.js';

// linux/magic.h
const CGROUP_V1 = 0x27e0eb;
const CGROUP_V2 = 0x63677270;
// linux/proc_ns.h: the namespace that every other pid namespace lies in.
const INITIAL_PID_NAMESPACE = 'pid:[4026531836]';

/** As /proc/self/ns reads; empty where the kernel has no such namespaces. */
export function namespaceOf(kind: 'cgroup' | 'pid'): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    // Kernels without such namespaces have one.
    return '';
  }
}

/** @throws where nothing is there */
export function isCgroupFolder(path: string): boolean {
  const { type } = statfsSync(path);
  return (type === CGROUP_V1 || type === CGROUP_V2) && statSync(path).isDirectory();
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

/** Whether a cgroup may still be populated. What cannot be judged from here counts as alive. */
export function isCgroupAlive(cgroup: CgroupIdentity): boolean {
  try {
    const here = numbersOf(cgroup.path);
    if (here && here.device === cgroup.device && here.inode === cgroup.inode) return mayHaveProcess(cgroup.path);
    return !isSeenWhole(cgroup);
  } catch {
    // It may have gone between two looks: the next one will tell.
    return true;
  }
}

// cgroup v1 does not show processes of other pid namespaces, so from an inner one an empty list says nothing.
function mayHaveProcess(path: string): boolean {
  if (hasProcess(path)) return true;
  return readIfThere(join(path, 'cgroup.events')) === undefined && namespaceOf('pid') !== INITIAL_PID_NAMESPACE;
}

/** Whether a process is seen in the cgroup or below it. */
function hasProcess(path: string): boolean {
  const events = readIfThere(join(path, 'cgroup.events'));
  if (events !== undefined) return /^populated 1$/m.test(events);
  // v1, or the root of v2.
  if (readIfThere(join(path, 'cgroup.procs'))?.trim()) return true;
  return readdirSync(path, { withFileTypes: true }).some(
    (entry) => entry.isDirectory() && hasProcess(join(path, entry.name)),
  );
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    // ENODEV: the cgroup was removed after the file was opened.
    if (['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Whether the path means here what it meant where the grant was made: then nothing there is nothing anywhere. */
function isSeenWhole({ path, device, namespace }: CgroupIdentity): boolean {
  if (namespaceOf('cgroup') !== namespace) return false;
  let above = path;
  while (!numbersOf(above)) above = dirname(above);
  return numbersOf(above)?.device === device && mountRoot(above) === '/';
}

/** The part of its file system that is mounted where the path leads; a container may see a part of a hierarchy under the path of the whole. */
function mountRoot(path: string): string | undefined {
  const isBelow = (point: string) => path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`);
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , , , point]) => isBelow(unescaped(point!)));
  // The deepest, and of those on one point the latest, which hides the others.
  const deepest = Math.max(...mounts.map(([, , , , point]) => point!.length));
  return mounts.filter(([, , , , point]) => point!.length === deepest).at(-1)?.[3];
}

// Blanks and such are written as \040.
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
