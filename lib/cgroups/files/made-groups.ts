// The cgroups that numalign made, which are the ones that it may remove.
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';

/**
 * A path alone would not do: another cgroup may have it by now. Both go at a reboot, so what is
 * kept here need not survive one.
 */
export interface MadeGroups {
  add(path: string, device: bigint, inode: bigint): void;
  has(path: string, device: bigint, inode: bigint): boolean;
  remove(path: string, device: bigint, inode: bigint): void;
}

const keyOf = (device: bigint, inode: bigint) => `${device}-${inode}`;

/** For as long as the object lives. */
export class MadeGroupsInMemory implements MadeGroups {
  readonly #paths = new Map<string, string>();

  add(path: string, device: bigint, inode: bigint): void {
    this.#paths.set(keyOf(device, inode), path);
  }

  has(path: string, device: bigint, inode: bigint): boolean {
    return this.#paths.get(keyOf(device, inode)) === path;
  }

  remove(_path: string, device: bigint, inode: bigint): void {
    this.#paths.delete(keyOf(device, inode));
  }
}

/**
 * In a folder, a small file for each: the name is device and inode, what is in it the path. For all
 * processes that share the folder.
 */
export class FolderMadeGroups implements MadeGroups {
  readonly #open: () => NativeFolder;
  #folder: NativeFolder | undefined;

  /** `folder`: its path, or what opens it. Opened at first use, and made by then. */
  constructor(folder: string | (() => NativeFolder)) {
    this.#open = typeof folder === 'function' ? folder : () => native.Folder.open(folder, true, 0o700, -1);
  }

  add(path: string, device: bigint, inode: bigint): void {
    this.#files.replace(keyOf(device, inode), path);
  }

  has(path: string, device: bigint, inode: bigint): boolean {
    return this.#files.read(keyOf(device, inode))?.toString() === path;
  }

  remove(_path: string, device: bigint, inode: bigint): void {
    this.#files.remove(keyOf(device, inode));
  }

  get #files(): NativeFolder {
    this.#folder ??= this.#open();
    return this.#folder;
  }
}
