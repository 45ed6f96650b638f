// The state folder: its owner, its users, and how numalign opens it.
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { thrownText } from '../../base/check-options.js';
import { kernelText } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { overlayOf } from '../../cgroups/files/mounts.js';
import { MACHINE_STATE_DIR } from '../../input/config.js';
import { partOf, using } from '../files/parts.js';
import { COPY_FILE, STATE_FILE } from '../files/state-files.js';
import { explaining, folderError, whyNoFolder } from './folder-error.js';
import { closedPart, giveToGroup, groupId, MACHINE_MODE, whyClosed } from './machine-group.js';
import { checkWritable } from './writable.js';

// A private folder is for its owner only.
const PRIVATE_MODE = 0o700;

/** The kernel makes a new one at each boot. */
export function readBootId(): string {
  return kernelText('/proc/sys/kernel/random/boot_id').trim();
}

// Resolves links in the folders above, so that one folder has one name. Opening the folder checks
// the last part.
export function canonical(path: string): string {
  try {
    // The `/.` refuses a file in the place of the folder above.
    return join(realpathSync.native(`${dirname(path)}/.`), basename(path));
  } catch (cause) {
    const isBelowFile = (cause as NodeJS.ErrnoException).code === 'ENOTDIR';
    const why = isBelowFile
      ? whyNoFolder(path)
      : 'the folder above it does not exist, or is closed to you: make it, or use another';
    throw folderError(path, why, cause);
  }
}

// Like Folder.identity, without opening it; undefined if nothing is there.
export function identityOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  } catch (cause) {
    throw folderError(path, `it cannot be found: ${thrownText(cause)}`, cause);
  }
}

/** True if the folder has a state or its copy. Opens and makes nothing. */
export function hasState(stateDir: string): boolean {
  return [STATE_FILE, COPY_FILE].some((name) => existsSync(join(stateDir, name)));
}

/**
 * `machine` for /run/numalign by any name: through links in the folders above, or as a bind mount.
 * Opens and makes nothing.
 */
export function scopeOf(stateDir: string): 'machine' | 'private' {
  return existsSync(`${dirname(stateDir)}/.`) ? scopeAt(canonical(stateDir)) : 'private';
}

/** The same for a path that {@link canonical} returned. */
export function scopeAt(path: string): 'machine' | 'private' {
  const identity = identityOf(path);
  const isMachine =
    path === MACHINE_STATE_DIR || (identity !== undefined && identity === identityOf(MACHINE_STATE_DIR));
  return isMachine ? 'machine' : 'private';
}

// linux/proc_ns.h: the user namespace above all others.
const INITIAL_USER_NAMESPACE = 'user:[4026531837]';

/**
 * True if the user stands for all users that this user namespace does not map, like the machine's
 * root in a container.
 */
function isOverflowUser(user: number): boolean {
  if (readlinkSync('/proc/self/ns/user') === INITIAL_USER_NAMESPACE) return false;
  return user === Number(kernelText('/proc/sys/kernel/overflowuid'));
}

// The nearest folder above that everyone may write to. The owner of a folder below it proves
// nothing. Undefined if there is none.
function publicFolderAbove(path: string): string | undefined {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (lstatSync(folder).mode & 0o002) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

// Anyone with write access to the folder can revoke any grant, so strangers must not have it.
function checkOwner(path: string, folder: NativeFolder): void {
  const { user, mode } = folder.owner();
  const self = process.geteuid!();
  if (user !== self && user !== 0) {
    if (!isOverflowUser(user))
      throw folderError(path, `it belongs to user ${user}, neither to you nor to root: use your own`);
    const publicFolder = publicFolderAbove(path);
    if (publicFolder !== undefined) {
      const why = 'it belongs to a user that this user namespace does not know, and may be a stranger’s';
      throw folderError(path, `${why}: every user may write to ${publicFolder}`);
    }
  }
  if (mode & 0o002) {
    const own = join(path, 'numalign');
    throw folderError(
      path,
      `every user may write to it (mode ${mode.toString(8)}): use your own, such as ${own}`,
    );
  }
}

// A process at the mount and one at its upper layer can both hold the lock at once.
function checkLayer(path: string): void {
  const overlay = overlayOf(path);
  if (overlay === undefined) return;
  const why = 'where the same files have other locks';
  throw folderError(path, `it is in the upper layer of the overlay ${overlay.point}: use it there, ${why}`);
}

/** Checks that a manager can use the folder, or make it. Makes nothing. @throws ERR_STATE_FOLDER */
export function checkUsable(stateDir: string): void {
  const path = canonical(stateDir);
  explaining(path, () => {
    const isThere = identityOf(path) !== undefined;
    checkLayer(path);
    if (isThere)
      using(native.Folder.open(path, false, PRIVATE_MODE, -1), (folder) => checkOwner(path, folder));
    try {
      checkWritable(isThere ? path : dirname(path));
    } catch (error) {
      const action = isThere ? 'written' : 'made';
      const isClosed = (error as NodeJS.ErrnoException).code === 'EACCES' && path === MACHINE_STATE_DIR;
      const why =
        isThere && isClosed ? whyClosed(path) : `it cannot be ${action}: ${thrownText(error)}: use your own`;
      throw folderError(path, why, error);
    }
    const part = isThere ? closedPart(path) : undefined;
    if (part === undefined) return;
    throw folderError(
      path,
      path === MACHINE_STATE_DIR ? whyClosed(path) : `${part} is closed to you: use your own`,
    );
  });
}

/** Opens the folder, or makes it. @throws ERR_STATE_FOLDER */
export function openFolder(path: string, scope: 'machine' | 'private') {
  return explaining(path, () => {
    const isMachines = scope === 'machine';
    const group = isMachines ? groupId() : -1;
    checkLayer(path);
    const folder = native.Folder.open(path, true, isMachines ? MACHINE_MODE : PRIVATE_MODE, group);
    const opened = [folder];
    try {
      checkOwner(path, folder);
      giveToGroup(path, group);
      const open = (name: string) => {
        const part = partOf(folder, name);
        opened.push(part);
        return part;
      };
      return { folder, owners: open('owners'), waiting: open('waiting') };
    } catch (error) {
      for (const each of opened) each.close();
      throw error;
    }
  });
}
