// The files of cgroup hierarchies: reading what may have gone, and the system calls that change a
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

// linux/magic.h
const CGROUP_V1 = 0x27e0eb;
const CGROUP_V2 = 0x63677270;

/** What changes a hierarchy, one system call on a cgroup each. Everything else only looks. */
export interface CgroupFiles {
  /** One write(2) of one line: the kernel takes it whole or refuses it. */
  write(path: string, text: string): void;
  makeFolder(path: string): void;
  removeFolder(path: string): void;
}

let changes = 0;

/** How often this environment has tried to change a hierarchy of the kernel's. */
export function countChanges(): number {
  return changes;
}

export const KERNEL_FILES: CgroupFiles = {
  write(path, text) {
    changes++;
    // Not writeFileSync: it would create what is not there, and truncate. An empty line is what
    // empties a set: no bytes at all are no write.
    const fd = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      writeSync(fd, `${text}\n`);
    } finally {
      closeSync(fd);
    }
  },
  makeFolder(path) {
    changes++;
    mkdirSync(path);
  },
  removeFolder(path) {
    changes++;
    rmdirSync(path);
  },
};

export function isCgroupFolder(path: string): boolean {
  const { type } = statfsSync(path);
  return (type === CGROUP_V1 || type === CGROUP_V2) && statSync(path).isDirectory();
}

/** Undefined where nothing is there. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // ENODEV: the cgroup was removed after the file was opened.
    if (['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** The names of the cgroups directly below one. */
export function childNames(path: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/**
 * Whether a process is seen in the cgroup or below it. Throws where one of them goes meanwhile:
 * what was in it may be anywhere.
 */
export function hasProcess(path: string): boolean {
  const events = readIfThere(join(path, 'cgroup.events'));
  if (events !== undefined) return /^populated 1$/m.test(events);
  // v1, or the root of v2.
  if (readIfThere(join(path, 'cgroup.procs'))?.trim()) return true;
  return childNames(path).some((name) => hasProcess(join(path, name)));
}
