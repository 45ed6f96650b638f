// State folders that exist, or not: they are opened to be read.
import { NumalignError, unless } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { explaining } from './folder-error.js';

/** Opens the folder; undefined if it does not exist. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
export function openExisting(path: string): NativeFolder | undefined {
  return explaining(path, () => unless(isMissing, () => native.Folder.open(path, false, 0o700, -1)));
}

const isMissing = (error: unknown) => error instanceof NumalignError && error.errnoName === 'ENOENT';

/**
 * Calls `look` with a folder inside `parent`, or undefined if there is none. Closes it afterwards.
 */
export function withChild<T>(
  parent: NativeFolder,
  name: string,
  look: (folder: NativeFolder | undefined) => T,
): T {
  const folder = childOf(parent, name);
  try {
    return look(folder);
  } finally {
    folder?.close();
  }
}

/** The folder with this name; undefined if there is none. */
export const childOf = (folder: NativeFolder, name: string) =>
  unless(isMissing, () => folder.child(name, false, 0o700, -1));
