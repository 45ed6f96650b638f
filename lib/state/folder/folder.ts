// The state folder: whose it is, who may use it, and how it is opened.
import { existsSync, lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { thrownText } from '../../base/check-options.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { checkWritable } from '../../base/writable.js';
import { overlayOf } from '../../cgroups/files/mounts.js';
import { MACHINE_STATE_DIR } from '../../input/config.js';
import { partOf, using } from '../files/parts.js';
import { COPY_FILE, STATE_FILE } from '../files/state-files.js';
import { explaining, folderError, whyNoFolder } from './folder-error.js';
import { closedPart, giveToGroup, groupId, MACHINE_MODE, whyClosed } from './machine-group.js';

// A private folder belongs to its user alone.
const PRIVATE_MODE = 0o700;

/** Differs from boot to boot. */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

// Without links in the folders above, so that one folder has one name. The last part is checked by
// opening it.
export function canonical(path: string): string {
  try {
    // A file does not pass for the folder above.
    return join(realpathSync.native(`${dirname(path)}/.`), basename(path));
  } catch (cause) {
    const isBelowFile = (cause as NodeJS.ErrnoException).code === 'ENOTDIR';
    const why = isBelowFile ? whyNoFolder(path) : 'the folder above it does not exist, or is closed to you';
    throw folderError(path, why, cause);
  }
}

// As Folder.identity, without opening; undefined where there is nothing.
function identityOf(path: string): string | undefined {
  try {
    const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  } catch (cause) {
    throw folderError(path, `it cannot be found: ${thrownText(cause)}`, cause);
  }
}

/** Whether a state, or the one before it, is in the folder. Opens and makes nothing. */
export function hasState(stateDir: string): boolean {
  return [STATE_FILE, COPY_FILE].some((name) => existsSync(join(stateDir, name)));
}

/**
 * `machine` for /run/numalign, by whatever name: through links in the folders above, or as a bind
 * mount. Opens and makes nothing.
 */
export function scopeOf(stateDir: string): 'machine' | 'private' {
  if (!existsSync(`${dirname(stateDir)}/.`)) return 'private';
  const path = canonical(stateDir);
  const identity = identityOf(path);
  const isMachine =
    path === MACHINE_STATE_DIR || (identity !== undefined && identity === identityOf(MACHINE_STATE_DIR));
  return isMachine ? 'machine' : 'private';
}

// linux/proc_ns.h: the one that every other user namespace lies in.
const INITIAL_USER_NAMESPACE = 'user:[4026531837]';

/**
 * Stands for every user that a user namespace does not know: the machine's root, say, seen from a
 * container.
 */
function isOverflowUser(user: number): boolean {
  if (readlinkSync('/proc/self/ns/user') === INITIAL_USER_NAMESPACE) return false;
  return user === Number(readFileSync('/proc/sys/kernel/overflowuid', 'latin1'));
}

// The nearest folder above in which everybody may make one: whose it is nobody can tell there.
// Undefined: there is none.
function publicFolderAbove(path: string): string | undefined {
  for (let above = dirname(path); ; above = dirname(above)) {
    if (lstatSync(above).mode & 0o002) return above;
    if (above === dirname(above)) return undefined;
  }
}

// Who can write the folder can revoke anyone's grant, so strangers must not be able to.
function checkOwner(path: string, folder: NativeFolder): void {
  const { user, mode } = folder.owner();
  const self = process.geteuid?.() ?? 0;
  if (user !== self && user !== 0) {
    if (!isOverflowUser(user))
      throw folderError(path, `it belongs to user ${user}, neither to you nor to root`);
    const above = publicFolderAbove(path);
    if (above !== undefined) {
      const why = 'it belongs to a user that this user namespace does not know, and may be a stranger’s';
      throw folderError(path, `${why}: everybody may write to ${above}`);
    }
  }
  if (mode & 0o002) throw folderError(path, `everybody may write it (mode ${mode.toString(8)})`);
}

// Through the mount and through its upper layer two processes hold the same lock at once.
function checkLayer(path: string): void {
  const overlay = overlayOf(path);
  if (overlay === undefined) return;
  const why = 'where the same files have other locks';
  throw folderError(path, `it is in the upper layer of the overlay ${overlay.point}: use it there, ${why}`);
}

/**
 * Whether a manager could use the folder, or make it where there is none. Makes nothing.
 * @throws ERR_STATE_FOLDER
 */
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
      const why = isThere && isClosed ? whyClosed(path) : `it cannot be ${action}: ${thrownText(error)}`;
      throw folderError(path, why, error);
    }
    const closed = isThere ? closedPart(path) : undefined;
    if (closed === undefined) return;
    throw folderError(path, path === MACHINE_STATE_DIR ? whyClosed(path) : `${closed} is closed to you`);
  });
}

export interface OpenFolder {
  readonly folder: NativeFolder;
  readonly owners: NativeFolder;
  readonly waiting: NativeFolder;
}

/** Opens it, or makes it. @throws ERR_STATE_FOLDER */
export function openFolder(path: string, scope: 'machine' | 'private'): OpenFolder {
  return explaining(path, () => {
    const isMachines = scope === 'machine';
    const group = isMachines ? groupId() : -1;
    checkLayer(path);
    const folder = native.Folder.open(path, true, isMachines ? MACHINE_MODE : PRIVATE_MODE, group);
    const opened = [folder];
    try {
      checkOwner(path, folder);
      if (isMachines) giveToGroup(path, group);
      const [owners, waiting] = ['owners', 'waiting'].map((name) => {
        const part = partOf(folder, name);
        opened.push(part);
        return part;
      });
      return { folder, owners: owners!, waiting: waiting! };
    } catch (error) {
      for (const each of opened) each.close();
      throw error;
    }
  });
}
