// The cgroups that numalign made, and may remove.
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';

/**
 * Identifies a cgroup by path, device and inode, because another cgroup may get its path. A reboot
 * removes all cgroups, so this record need not survive one.
 */
export interface MadeGroups {
  add(path: string, device: bigint, inode: bigint): void;
  has(path: string, device: bigint, inode: bigint): boolean;
  remove(path: string, device: bigint, inode: bigint): void;
}

const keyOf = (device: bigint, inode: bigint) => `${device}-${inode}`;

/** Remembers them as long as the object lives. */
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
 * Remembers them in a folder that processes share. Each cgroup has a small file, named by device
 * and inode, with the path as its content.
 */
export class FolderMadeGroups implements MadeGroups {
  readonly #open: () => NativeFolder;
  #folder: NativeFolder | undefined;

  /**
   * `folder`: a path, or a function that opens the folder. It is opened, or made, at the first use.
   */
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
