// Folders, locks and watches of the addon.
import type { NumalignError } from './errors.js';

/** The exclusive lock of a folder, held until released or until the environment ends. */
export interface NativeLock {
  /** The one that its file has; 0 where it has none. */
  number(): number;
  /** Below 10^15. Where the disk is full the file keeps the one before. */
  setNumber(number: number): void;
  release(): void;
}

/**
 * A locked file that says its owner is alive. Must be kept referenced: collecting it drops the
 * lock.
 */
export interface NativeOwner {
  readonly fd: number;
  write(bytes: string | Buffer): void;
  /** Of the file. */
  size(): number;
  /** From an offset on. */
  writeAt(offset: number, text: string): void;
  /** Leaves the first `size` bytes. */
  cut(size: number): void;
  close(): void;
  /** True if the file still has its name in this folder. */
  isCurrent(folder: NativeFolder): boolean;
}

/** A file to which records are appended. It stays the same file whatever its name leads to later. */
export interface NativeJournal {
  /** Like {@link NativeFolder.version}. */
  version(): string;
  /**
   * True if nothing has happened to the file, nor to its name, since {@link confirm}: by one fstat(2).
   * False where that is not certain, such as just after a change.
   */
  isUntouched(): boolean;
  /**
   * Since {@link isUntouched} was false, the name was seen to lead to the file in the version that is
   * known.
   */
  confirm(): void;
  /** The bytes from an offset on, `most` of them. */
  read(offset: number, most?: number): Buffer;
  /**
   * Appends a text to the file, which must have its name in `folder` and end at `offset` (else
   * ESTALE), and makes it durable.
   * `lock`: must still be the one of its file in `folder` (else ESTALE); released once that is done
   * if it `isLast`, after the text was appended to the file `copy` (which is written whole where it
   * did not end there too), and the lock's file has got this `number`. Answers the version of the
   * file: at once where the folder is in memory, else once the device has it. Where to write fails,
   * the file is as it was; where to sync it fails (`fdatasync`), the text is there, and may be lost
   * with the power.
   */
  append(
    offset: number,
    text: string,
    folder: NativeFolder,
    lock: NativeLock,
    isLast: boolean,
    copy: string,
    number: number,
  ): string | Promise<string>;
  /** Leaves the first `size` bytes. */
  cut(size: number, folder: NativeFolder): void;
  close(): void;
}

/** `mode`: permission bits; `links`: how many names it has. */
export interface FoundFile {
  readonly bytes: Buffer;
  readonly user: number;
  readonly mode: number;
  readonly links: number;
}

/** An open folder. Names are of files directly in it; no link is followed. */
export interface NativeFolder {
  child(name: string, create: boolean, mode: number, group: number): NativeFolder;
  owner(): { user: number; group: number; mode: number };
  /** Differs from that of every other folder while this one is open. */
  identity(): string;
  isCurrent(): boolean;
  /** This object stands for another folder from now on. */
  become(folder: NativeFolder): void;
  /**
   * Lets the folder go, which otherwise stays open until this object is collected. Every method
   * fails with EBADF then, until it stands for another folder.
   */
  close(): void;
  /** On a file system of memory, which does not outlive a boot. */
  isInMemory(): boolean;
  /** On a file system that this kernel alone changes: inotify(7) and times of files show all of it. */
  isLocal(): boolean;
  /** `known`: answered itself where the file has these bytes. */
  read(name: string, known?: Buffer): Buffer | undefined;
  /** The bytes, and what fstat(2) says of the very inode that has them. */
  readFound(name: string): FoundFile | undefined;
  /** This folder; only their owner can write to new files in it. */
  withOwnFiles(): NativeFolder;
  version(name: string): string | undefined;
  list(): string[];
  remove(name: string): void;
  /** Whatever it is, into another folder of the same file system. */
  move(name: string, to: NativeFolder, newName: string): void;
  /** Whole, but not durably: what a crash of the machine leaves of it is not said. */
  replace(name: string, text: string): void;
  /**
   * `stamp`: nanoseconds of the modification time, 0 to 999,999,999. `lock`: must still be the one
   * of its file (else ESTALE); released once the new file is durable if it `isLast`, after the same
   * bytes were written to the file `copy`, if any, and its file has got this `number`. Answers the
   * version of the new file: at once where the folder is in memory, else once the device has it.
   */
  replaceDurably(
    name: string,
    copy: string,
    bytes: Buffer,
    stamp: number,
    lock?: NativeLock,
    isLast?: boolean,
    number?: number,
  ): string | Promise<string>;
  /** An ordinary file; undefined where there is none. */
  openJournal(name: string): NativeJournal | undefined;
  /** `pastWaiting`: even if a process waits. */
  tryLock(name: string, note: string, pastWaiting?: boolean): NativeLock | undefined;
  waitLock(name: string, note: string, callback: (error?: NumalignError, lock?: NativeLock) => void): number;
  giveUp(request: number): boolean;
  /** That of the lock's file, read without the lock; 0 where it has none. */
  lockNumber(name: string): number;
  /**
   * A new file in place of any other, locked. No process sees half of it, and if it fails nothing
   * has changed. `start`, `length`: the bytes that the lock covers, as /proc/locks shows them; else
   * the whole file.
   */
  createOwner(name: string, text: string, start?: bigint, length?: bigint): NativeOwner;
  isOwnerAlive(name: string): boolean;
}

/** A file descriptor that this environment's event loop polls. */
export interface NativeNotices {
  close(): void;
}

export interface NativeInotify extends NativeNotices {
  /** A folder or file; `mask` as inotify(7) has it, with its flags. Answers the number of the watch. */
  add(path: string, mask: number): number;
  /** Does nothing if the watch has ended with its target. */
  remove(watch: number): void;
  /** True if the callback is still to be called for something that has happened. */
  hasPending(): boolean;
}
