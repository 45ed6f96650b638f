// KernelFiles: settings of the kernel that are files, in /proc and /sys.
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Errors are those of node:fs, with `code` such as EPERM. */
export interface KernelFiles {
  /** Without white space around it; undefined where there is no such file. */
  read(path: string): string | undefined;
  write(path: string, value: string): void;
  /** Names in a folder, sorted; none where there is no such folder. */
  list(path: string): readonly string[];
  exists(path: string): boolean;
  /** Whether this process has the rights to write it, or to make it where it is not there. */
  isWritable(path: string): boolean;
  /** What a symbolic link says, such as `net:[4026531840]`; undefined where there is none. */
  link(path: string): string | undefined;
  makeFolder(path: string): void;
  /** Does nothing where there is no such folder. */
  removeFolder(path: string): void;
}

// Errors of a file, or of what is behind it, that has just gone away.
const MISSING = new Set(['ENOENT', 'ENODEV', 'ENXIO', 'ENOTDIR']);

function unlessMissing<T, U>(act: () => T, missing: U): T | U {
  try {
    return act();
  } catch (error) {
    if (MISSING.has((error as NodeJS.ErrnoException).code ?? '')) return missing;
    throw error;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Of the running kernel. `root`: what stands for `/`. */
export function kernelFiles(root = ''): KernelFiles {
  return {
    read: (path) => unlessMissing(() => readFileSync(root + path, 'utf8').trim(), undefined),
    // Without O_CREAT and O_TRUNC, which some of these files refuse.
    write: (path, value) => writeFileSync(root + path, value, { flag: 'r+' }),
    list: (path) => unlessMissing(() => readdirSync(root + path).sort(), []),
    exists: (path) => existsSync(root + path),
    isWritable: (path) => isWritable(root + (existsSync(root + path) ? path : dirname(path))),
    link: (path) => unlessMissing(() => readlinkSync(root + path), undefined),
    makeFolder: (path) => void mkdirSync(root + path),
    removeFolder: (path) => unlessMissing(() => rmdirSync(root + path), undefined),
  };
}

function unlessClosed<T, U>(act: () => T, closed: U): T | U {
  try {
    return act();
  } catch {
    return closed;
  }
}

/** The same for a look: what cannot be read, for whatever reason, is not there. */
export function visibleFiles(files: KernelFiles): KernelFiles {
  return {
    ...files,
    read: (path) => unlessClosed(() => files.read(path), undefined),
    list: (path) => unlessClosed(() => files.list(path), []),
  };
}
