// The files of cgroup hierarchies: reads that tolerate removal, and the system calls that change a
// hierarchy.
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { hasCode, unless } from '../../base/errors.js';

// linux/magic.h
const CGROUP_V1 = 0x27e0eb;
const CGROUP_V2 = 0x63677270;

let changes = 0;

/** How often this environment has tried to change a hierarchy of the kernel. */
export function countChanges(): number {
  return changes;
}

/**
 * The operations that change a hierarchy, one system call on a cgroup each. Everything else only
 * reads.
 */
export const KERNEL_FILES = {
  /** One write(2) of one line, which the kernel takes as a whole or refuses. */
  write(path: string, text: string): void {
    changes++;
    // writeFileSync would create a missing file, and truncate. An empty line empties a set; zero
    // bytes would not reach the kernel.
    const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      writeSync(fd, `${text}\n`);
    } finally {
      closeSync(fd);
    }
  },
  makeFolder(path: string): void {
    changes++;
    mkdirSync(path);
  },
  removeFolder(path: string): void {
    changes++;
    rmdirSync(path);
  },
};

export type CgroupFiles = typeof KERNEL_FILES;

export function isCgroupFolder(path: string): boolean {
  const { type } = statfsSync(path);
  return (type === CGROUP_V1 || type === CGROUP_V2) && statSync(path).isDirectory();
}

/** The text of a file; undefined if it does not exist. */
export const readIfThere = (path: string): string | undefined =>
  // ENODEV: the cgroup was removed after the file was opened.
  unless(hasCode('ENOENT', 'ENODEV'), () => readFileSync(path, 'utf8'));

/** The names of the cgroups directly below a cgroup. */
export function childNames(path: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/**
 * True if a process is visible in the cgroup or below it. Throws if a cgroup is removed meanwhile,
 * because its processes may be anywhere.
 */
export function hasProcess(path: string): boolean {
  const events = readIfThere(join(path, 'cgroup.events'));
  if (events !== undefined) return /^populated 1$/m.test(events);
  // v1, or the root of v2.
  if (readIfThere(join(path, 'cgroup.procs'))?.trim()) return true;
  return childNames(path).some((name) => hasProcess(join(path, name)));
}
