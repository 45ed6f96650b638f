// Hierarchies: where the machine's cgroups are mounted, version 1 and 2, and the folder of a
// process.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NodeError } from '../base/errors.js';

/** A cgroup hierarchy, as this process sees it. */
export interface Hierarchy {
  readonly version: 1 | 2;
  /** The mount point. */
  readonly point: string;
  /** The cgroup mounted there: not `/` if only a part of the hierarchy is mounted. */
  readonly root: string;
  /** Its controllers, such as `cpuset`. */
  readonly controllers: readonly string[];
}

// proc(5) escapes blanks and the like, such as \040.
const unescaped = (text: string) =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

function hierarchyOf(line: string): Hierarchy | undefined {
  const fields = line.split(' ');
  const [type, , options] = fields.slice(fields.indexOf('-', 6) + 1);
  if (type !== 'cgroup' && type !== 'cgroup2') return undefined;
  const [root, point] = [unescaped(fields[3]!), unescaped(fields[4]!)];
  if (type === 'cgroup') return { version: 1, point, root, controllers: options!.split(',') };
  const file = join(point, 'cgroup.controllers');
  const controllers = existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ') : [];
  return { version: 2, point, root, controllers };
}

/** All mounted hierarchies; `proc`: where proc(5) is mounted. */
export function readHierarchies(proc = '/proc'): Hierarchy[] {
  const lines = readFileSync(join(proc, 'self/mountinfo'), 'utf8').trimEnd().split('\n');
  return lines.map(hierarchyOf).filter((each) => each !== undefined);
}

/** The hierarchy with this controller, preferably a whole one; undefined if there is none. */
export function findHierarchy(controller: string, hierarchies = readHierarchies()): Hierarchy | undefined {
  const found = hierarchies.filter(({ controllers }) => controllers.includes(controller));
  return found.find(({ root }) => root === '/') ?? found[0];
}

/** The path of a process in a hierarchy, from the text of /proc/PID/cgroup. */
export function pathIn({ version, controllers }: Hierarchy, text: string): string | undefined {
  for (const line of text.split('\n')) {
    const [, names, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (names === undefined) continue;
    const isMatch =
      version === 2 ? names === '' : names.split(',').some((name) => controllers.includes(name));
    // The line of a process that has ended, or whose cgroup was removed, ends like this.
    if (isMatch) return path!.replace(/ \(deleted\)$/, '');
  }
  return undefined;
}

/** The folder of a path in a hierarchy; undefined if it is outside of the mounted part. */
export function folderOf({ root, point }: Hierarchy, path: string): string | undefined {
  if (path.split('/').includes('..')) return undefined;
  if (root === '/') return join(point, path);
  if (path !== root && !path.startsWith(`${root}/`)) return undefined;
  return join(point, path.slice(root.length));
}

/**
 * The folder of a process's cgroup in the hierarchy with this controller.
 * @throws ERR_CGROUP if there is no such hierarchy or process, or the cgroup is outside of the
 *   mounted part
 */
export function folderOfProcess(pid: number, controller: string, proc = '/proc'): string {
  const hierarchy = findHierarchy(controller, readHierarchies(proc));
  if (!hierarchy) {
    const valid = `a machine whose cgroups have the ${controller} controller, with them mounted here`;
    throw new NodeError('ERR_CGROUP', `no hierarchy of cgroups with ${controller} is mounted here`, {
      value: controller,
      valid,
    });
  }
  const path = pathIn(hierarchy, membership(pid, proc));
  const folder = path === undefined ? undefined : folderOf(hierarchy, path);
  if (folder !== undefined) return folder;
  throw new NodeError(
    'ERR_CGROUP',
    `the cgroup ${path} of process ${pid} is outside of what is mounted at ${hierarchy.point}`,
    { value: path, valid: 'the cgroup namespace of the host, and its whole hierarchy mounted' },
  );
}

function membership(pid: number, proc: string): string {
  try {
    return readFileSync(join(proc, `${pid}/cgroup`), 'utf8');
  } catch (cause) {
    const facts = { value: pid, valid: 'a process that runs', cause };
    throw new NodeError('ERR_CGROUP', `there is no process ${pid}, or this user may not see it`, facts);
  }
}
