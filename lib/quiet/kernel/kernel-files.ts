// KernelFiles: kernel settings that are files in /proc and /sys.
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
import { hasCode, unless, unlessThrown } from '../../base/errors.js';

/** Errors are those of node:fs, with a `code` such as EPERM. */
export interface KernelFiles {
  /** The text without surrounding white space; undefined if there is no such file. */
  read(path: string): string | undefined;
  write(path: string, value: string): void;
  /** The sorted names in a folder; empty if there is no such folder. */
  list(path: string): readonly string[];
  exists(path: string): boolean;
  /** Whether this process may write the file, or create it if it does not exist. */
  isWritable(path: string): boolean;
  /** The target of a symbolic link, such as `net:[4026531840]`; undefined if there is none. */
  link(path: string): string | undefined;
  makeFolder(path: string): void;
  /** Does nothing if there is no such folder. */
  removeFolder(path: string): void;
}

// Errors of a file, or of its device, that has just disappeared.
const isMissing = hasCode('ENOENT', 'ENODEV', 'ENXIO', 'ENOTDIR');

const unlessMissing = <T, U>(act: () => T, missing: U): T | U => unless(isMissing, act, missing);

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Files of the running kernel. `root`: the folder to use in place of `/`. */
export function kernelFiles(root = ''): KernelFiles {
  return {
    read: (path) => unlessMissing(() => readFileSync(root + path, 'utf8').trim(), undefined),
    // These files may refuse O_CREAT and O_TRUNC.
    write: (path, value) => writeFileSync(root + path, value, { flag: 'r+' }),
    list: (path) => unlessMissing(() => readdirSync(root + path).sort(), []),
    exists: (path) => existsSync(root + path),
    isWritable: (path) => isWritable(root + (existsSync(root + path) ? path : dirname(path))),
    link: (path) => unlessMissing(() => readlinkSync(root + path), undefined),
    makeFolder: (path) => void mkdirSync(root + path),
    removeFolder: (path) => unlessMissing(() => rmdirSync(root + path), undefined),
  };
}

/**
 * The same for looking only: a file that cannot be read, for whatever reason, counts as missing.
 */
export function visibleFiles(files: KernelFiles): KernelFiles {
  return {
    ...files,
    read: (path) => unlessThrown(() => files.read(path), undefined),
    list: (path) => unlessThrown(() => files.list(path), []),
  };
}
