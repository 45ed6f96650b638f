// Errors of a state folder, in terms of the folder that was chosen.
import { statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { NumalignError } from '../../base/errors.js';
import { MACHINE_STATE_DIR } from '../../input/config.js';
import { GROUP, whyClosed } from './machine-group.js';

export function folderError(path: string, message: string, cause?: unknown): NumalignError {
  return new NumalignError('ERR_STATE_FOLDER', `the state folder ${path} cannot be used: ${message}`, {
    value: path,
    valid: `a folder that you own, or ${path} made for you: mode 2770, group ${GROUP}, of which you are a member`,
    cause,
  });
}

// The first part above a path that is no folder.
function fileAbove(path: string): string | undefined {
  const above = dirname(path);
  if (above === path) return undefined;
  return fileAbove(above) ?? (statSync(above).isDirectory() ? undefined : above);
}

/** REQUIRES: the kernel says ENOTDIR of the path, or of the folder above it. */
export function whyNoFolder(path: string): string {
  const file = fileAbove(path);
  return file === undefined ? 'it is a link or no folder' : `it is below ${file}, which is no folder`;
}

// By number: Node has no name for some of them.
const { EINVAL, ENOLCK, EOPNOTSUPP, ENOSYS, ESTALE } = constants.errno;

const NO_LOCKS: readonly number[] = [EINVAL, ENOLCK, EOPNOTSUPP, ENOSYS];

// What an errno of the folder or of a file in it means to somebody who chose the folder.
export function explain(path: string, error: unknown): unknown {
  if (!(error instanceof NumalignError) || error.code !== 'ERR_SYSCALL') return error;
  const denied = () => (path === MACHINE_STATE_DIR ? whyClosed(path) : 'permission denied');
  const reasons: Record<string, string | (() => string)> = {
    ELOOP: 'it is a symbolic link, and links are not followed',
    ENOTDIR: () => whyNoFolder(path),
    ENOENT: 'the folder above it does not exist',
    EACCES: denied,
    EPERM: denied,
    EROFS: 'its file system is read-only',
  };
  const noLocks = 'its file system has no open-file-description locks, by which the kernel tells who lives';
  const isLocking = error.syscall === 'fcntl' && NO_LOCKS.includes(error.errno ?? 0);
  const stale =
    'the file of its lock was removed while it was locked, and somebody else may have the lock now';
  const known = isLocking ? noLocks : error.errno === ESTALE ? stale : reasons[error.errnoName ?? ''];
  const reason = typeof known === 'function' ? known() : known;
  if (reason === undefined) return error;
  // Of something in the folder the message says what.
  const isInside =
    /^E(LOOP|NOTDIR)$/.test(error.errnoName ?? '') && !error.message.includes(` folder ${path}: `);
  return folderError(path, isInside ? `${error.message} (links are not followed)` : reason, error);
}

/**
 * What goes wrong with a state folder, in terms of the folder that was chosen.
 * @throws ERR_STATE_FOLDER, and what else `action` throws
 */
export function explaining<T>(path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw explain(path, error);
  }
}
