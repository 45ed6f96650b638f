// State folders that exist, or not: they are opened to be read.
import { NumalignError, unless } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { using } from '../files/parts.js';
import { explaining } from './folder-error.js';

/** Opens the folder; undefined if it does not exist. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
export function openExisting(path: string): NativeFolder | undefined {
  return explaining(path, () => unless(isMissing, () => native.Folder.open(path, false, 0o700, -1)));
}

const isMissing = (error: unknown) => error instanceof NumalignError && error.errnoName === 'ENOENT';

/** What looks at a folder, or at undefined if there is none. */
type Look<T> = (folder: NativeFolder | undefined) => T;

/** Calls `look` with a folder inside `parent`, and closes it afterwards. */
export const withChild = <T>(parent: NativeFolder, name: string, look: Look<T>): T =>
  closing(childOf(parent, name), look);

/** Calls `look` with a folder, and closes it afterwards. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
export const withExisting = <T>(path: string, look: Look<T>): T => closing(openExisting(path), look);

const closing = <T>(folder: NativeFolder | undefined, look: Look<T>): T =>
  folder ? using(folder, look) : look(folder);

/** The folder with this name; undefined if there is none. */
export const childOf = (folder: NativeFolder, name: string) =>
  unless(isMissing, () => folder.child(name, false, 0o700, -1));
