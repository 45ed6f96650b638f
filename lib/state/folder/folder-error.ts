// Errors of a state folder, in terms of the folder that the user chose.
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { kernelError, NumalignError, reworded } from '../../base/errors.js';
import { mountOf } from '../../cgroups/files/mounts.js';
import { MACHINE_STATE_DIR } from '../../input/config.js';
import { GROUP, whyClosed } from './machine-group.js';

export function folderError(
  path: string,
  message: string,
  cause?: unknown,
  valid = `a folder that you own, or ${path} made for you: mode 2770, group ${GROUP}, with you as a member`,
): NumalignError {
  const text = `the state folder ${path} cannot be used: ${message}`;
  return new NumalignError('ERR_STATE_FOLDER', text, { value: path, valid, cause });
}

// Their locks are the kernel's own.
const LOCKING_FILE_SYSTEMS = 'a folder on tmpfs, ext4, xfs or btrfs, or on an overlay of them';

function noLocksError(path: string, cause: unknown): NumalignError {
  const type = mountOf(path)?.type ?? 'unknown';
  const why = `its file system (${type}) has no open-file-description locks that the kernel lists, which show numalign which owners live; use ${LOCKING_FILE_SYSTEMS}`;
  return folderError(path, why, cause, LOCKING_FILE_SYSTEMS);
}

// The topmost part of the path's parents that is not a folder.
function fileAbove(path: string): string | undefined {
  const parent = dirname(path);
  if (parent === path) return undefined;
  return fileAbove(parent) ?? (statSync(parent).isDirectory() ? undefined : parent);
}

/** REQUIRES: the kernel returned ENOTDIR for the path or the folder above it. */
export function whyNoFolder(path: string): string {
  const file = fileAbove(path);
  return file === undefined
    ? 'it is a link or not a folder: name a folder'
    : `it is below ${file}, which is not a folder: name another`;
}

const NO_FILE = 'it is not an ordinary file';
const NO_LOCKS = ['EINVAL', 'ENOLCK', 'ENOTSUP', 'ENOSYS'];

// Explains an errno of the folder, or of a file in it, to the user who chose the folder. Adds the
// folder to an error of a file's contents.
export function explain<E>(path: string, error: E): E | NumalignError {
  if (!(error instanceof NumalignError)) return kernelError(error);
  if (/^ERR_STATE_(CORRUPT|VERSION)$/.test(error.code) && !error.message.includes(path))
    return reworded(error, `${error.message} (in ${path})`, { cause: error.cause });
  if (error.code !== 'ERR_SYSCALL') return error;
  const denied = () =>
    path === MACHINE_STATE_DIR ? whyClosed(path) : 'permission denied: use a folder of your own';
  const reasons: Record<string, string | (() => string)> = {
    ELOOP: 'it is a symbolic link, and links are not followed: name the folder',
    ENOTDIR: () => whyNoFolder(path),
    ENOENT: 'the folder above it does not exist: make it first',
    EACCES: denied,
    EPERM: denied,
    EROFS: 'its file system is read-only: use a folder elsewhere',
    EISDIR: NO_FILE,
    ENXIO: NO_FILE,
    ESTALE: 'the file of its lock was removed while it was locked, and another process may have the lock now',
  };
  if (error.syscall === 'fcntl' && NO_LOCKS.includes(error.errnoName ?? '')) return noLocksError(path, error);
  const cause = reasons[error.errnoName ?? ''];
  const reason = typeof cause === 'function' ? cause() : cause;
  if (reason === undefined) return error;
  // The message of an error inside the folder names its file.
  const hint = reason === NO_FILE ? NO_FILE : 'links are not followed';
  const isInside =
    /^E(LOOP|NOTDIR|ISDIR|NXIO)$/.test(error.errnoName ?? '') && !error.message.includes(` folder ${path}: `);
  return folderError(path, isInside ? `${error.message} (${hint})` : reason, error);
}

/**
 * Runs `action` and turns errors of the state folder into ERR_STATE_FOLDER.
 * @throws ERR_STATE_FOLDER, and what else `action` throws
 */
export function explaining<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw explain(path, error);
  }
}
