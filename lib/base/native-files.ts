// The addon's folders, locks, watches and files of code.
import type { NumalignError } from './errors.js';
import type { Words } from './words.js';

/** The exclusive lock of a folder, held until released or until the environment ends. */
export interface NativeLock {
  /**
   * The number in the lock's file; 0 if it has none. Of {@link NativeFolder.begin} the highest that
   * another process shows, if that is higher.
   */
  number(): number;
  /** The version of the journal that {@link NativeFolder.begin} has found; else undefined. */
  version(): string | undefined;
  /** Writes a number below 10^15. On a full disk the file keeps the previous number. */
  setNumber(number: number): void;
  release(): void;
}

/** A locked file that shows its owner is alive. Keep a reference: collecting it drops the lock. */
export interface NativeOwner {
  readonly fd: number;
  write(bytes: string | Buffer): void;
  /**
   * Shows the CRC-32 of what the file says, and a generation, as a lock, which no other program can
   * put back. See {@link OwnerLook.seal}.
   */
  seal(checksum: number, generation: number): void;
  /**
   * Writes `lines`, and the line that is the last one, at an offset, in place of the last line, and seals
   * the file. `before`: the checksum of what stands before the offset. Returns that of all lines but
   * the last. Undefined if the file does not end with one line behind the offset: it is unchanged. If
   * only the seal fails (`fcntl`), the lines are there.
   */
  append(at: number, lines: string, last: string, before: number, generation: number): number | undefined;
  writeAt(offset: number, text: string): void;
  /** Keeps the first `size` bytes. */
  cut(size: number): void;
  close(): void;
  /** True if the file still has its name in this folder. */
  isCurrent(folder: NativeFolder): boolean;
}

/** An owner's file at one moment. */
export interface OwnerLook {
  readonly isLocked: boolean;
  /** The contents of a locked file. */
  readonly bytes?: Buffer;
  /** The checksum of what the owner of a locked file wrote there, if it has a seal. */
  readonly seal?: number;
}

/** A file of appended records. It stays the same file even if its name leads to another later. */
export interface NativeJournal {
  /** Like {@link NativeFolder.version}. */
  version(): string;
  /**
   * The version of what has the file's name in `folder`; undefined if there is nothing. True if it is
   * the one of {@link know}, as one fstat(2) shows if the file is not new.
   */
  lookIn(folder: NativeFolder): string | true | undefined;
  /** Call it once you know what the version that {@link lookIn} has found says. */
  know(): void;
  /** At most `most` bytes from an offset on. */
  read(offset: number, most?: number): Buffer;
  /**
   * Appends a text to the file and makes it durable. The file must have its name in `folder` and
   * end at `offset`, and `lock` must still be the lock of its file in `folder`: else ESTALE. Then
   * appends the text to the file `copy` (or writes it whole, if it does not end at `offset` too),
   * writes `number` to the lock's file, and shows it, as {@link show} does. With `isLast` it
   * releases the lock. Returns the version of the file: at once if the folder is in memory, else
   * once the device has the text. If writing fails, the file is unchanged. If syncing fails
   * (`fdatasync`), the text is written, but a power cut may lose it.
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
  /** Keeps the first `size` bytes. */
  cut(size: number, folder: NativeFolder): void;
  /**
   * Shows others that this process knows this generation, as a lock, which stays if another program
   * puts an earlier text into the same file.
   */
  show(generation: number): void;
  /** The highest generation above `least` that another process shows; else `least`. */
  shown(least: number): number;
  close(): void;
}

/** A file's bytes and metadata. `mode`: permission bits; `links`: the number of its names. */
export interface FoundFile {
  readonly bytes: Buffer;
  readonly user: number;
  readonly mode: number;
  readonly links: number;
}

/** An open folder. Names are of files directly in it; links are not followed. */
export interface NativeFolder {
  child(name: string, create: boolean, mode: number, group: number): NativeFolder;
  owner(): { user: number; group: number; mode: number };
  /** A text that no other folder has while this one is open. */
  identity(): string;
  /** True if the path still leads to this folder, and those of the others to them. */
  isCurrent(...others: NativeFolder[]): boolean;
  /** Makes this object stand for another folder from now on. */
  become(folder: NativeFolder): void;
  /**
   * Closes the folder, which otherwise stays open until this object is collected. Every method then
   * fails with EBADF, until {@link become} is called.
   */
  close(): void;
  /** True on a file system in memory, which a reboot empties. */
  isInMemory(): boolean;
  /**
   * True if only this kernel changes the file system: inotify(7) and file times show every change.
   */
  isLocal(): boolean;
  /** The file's bytes; the buffer `previous` itself if they are equal. Undefined without a file. */
  read(name: string, previous?: Buffer): Buffer | undefined;
  /** The file's bytes, with what fstat(2) reports of the same inode. */
  readFound(name: string): FoundFile | undefined;
  /** The same folder, in which only the owner of a new file can write to it. */
  withOwnFiles(): NativeFolder;
  version(name: string): string | undefined;
  list(): string[];
  remove(name: string): void;
  /** Moves a file or folder into another folder of the same file system. */
  move(name: string, to: NativeFolder, newName: string): void;
  /** Replaces a file as a whole, but not durably: its content after a crash is undefined. */
  replace(name: string, text: string): void;
  /**
   * Replaces a file as a whole and durably. `stamp`: nanoseconds of the modification time, 0 to
   * 999,999,999. `lock` must still be the lock of its file: else ESTALE. With `isLast` it then
   * writes the same bytes to the file `copy`, if any, writes `number` to the lock's file and
   * releases the lock. Returns the version of the new file: at once if the folder is in memory,
   * else once the device has the bytes.
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
  /** Opens an ordinary file; undefined if there is none. */
  openJournal(name: string): NativeJournal | undefined;
  /**
   * Takes the lock if it is free, and no other process waits or has its turn, unless this process has.
   * `pastWaiting`: even then.
   */
  tryLock(name: string, note: string, pastWaiting?: boolean): NativeLock | undefined;
  /**
   * Takes the lock as {@link tryLock} does, if the paths still lead to this folder and to those inside
   * it, and the name of `journal` leads to it. It had this `generation`, and is shorter than `limit`.
   * Else changes nothing. The lock must be released, once: then it may be that of a later step.
   */
  begin(
    name: string,
    note: string,
    journal: NativeJournal,
    generation: number,
    limit: number,
    ...inside: NativeFolder[]
  ): NativeLock | undefined;
  /**
   * Returns the number of the request. `onNext` is called once only the holder of the lock is before
   * it, if others were too. Such a request begins a turn: this process may take the lock again before
   * all that wait, up to 32 times in 10 ms.
   */
  waitLock(
    name: string,
    note: string,
    callback: (error?: NumalignError, lock?: NativeLock) => void,
    onNext: () => void,
  ): number;
  giveUp(request: number): boolean;
  /** The number in the lock's file, read without taking the lock; 0 if it has none. */
  lockNumber(name: string): number;
  /**
   * Makes a new locked file, in place of any other. No process sees half of it; a failure changes
   * nothing. `start`, `length`: the bytes that the lock covers, as /proc/locks shows them; by
   * default the whole file. With a `generation` it has its seal too: see {@link NativeOwner.seal}.
   */
  createOwner(name: string, text: string, start?: bigint, length?: bigint, generation?: number): NativeOwner;
  isOwnerAlive(name: string): boolean;
  /** Undefined if {@link read} would refuse the file as too large. @throws also without a file */
  lookAtOwner(name: string): OwnerLook | undefined;
  /**
   * Looks at these owners' files at once, or at all. `names`: of the files without a lock, and of what
   * {@link lookAtOwner} does not take. With a `generation` also of locked files, but those that are as their
   * owners wrote them, as their seals show, and add nothing to a state of this generation. `sum`: see
   * {@link NativeOwnerNames.confirm}.
   */
  survey(generation?: number, files?: readonly string[]): { readonly names: string[]; readonly sum: number };
  /** The device of this folder's files in the lines of /proc/locks. */
  lockDevice(): string;
}

/**
 * Whether the files in `owners`, the folder owners/ of the state folder at `path`, are those that
 * numalign put there. A note in `notes` says so: any other program's change shows.
 */
export interface NativeOwnerNames {
  areKept(): boolean;
  /** Undefined if {@link confirm} tells. */
  areNoted(): boolean | undefined;
  /** `sum`: of the names and inodes of all files, see {@link NativeFolder.survey}. */
  confirm(sum: number): boolean;
  /** False if the names are not kept: nothing ends the change. */
  beginChange(names: readonly string[]): boolean;
  /** False if another program has come between. */
  endChange(): boolean;
  noteChange(): void;
  /** False on a disk, where names are never kept: nothing ends the look. */
  beginLook(): boolean;
  endLook(): void;
}

/** A file descriptor that this environment's event loop polls. */
export interface NativeNotices {
  close(): void;
}

export interface NativeInotify extends NativeNotices {
  /**
   * Watches a folder or file. `mask`: events and flags of inotify(7). Returns the watch's number.
   */
  add(path: string, mask: number): number;
  /** Does nothing if the watch has ended with its target. */
  remove(watch: number): void;
  /** True if an event has happened that the callback has not received yet. */
  hasPending(): boolean;
}

/**
 * Change lines, merged. `change`: JSON as of one line; '' without a whole line. Its `gone` has pods that
 * a line brought and a later one released, and `released` those that were on record before. `length`:
 * of the whole lines, in bytes. `seal`: of the last one. `words`: of the CPUs of its `pods`, which
 * native/core/pod_rows.h describes.
 */
export type MergedLines = readonly [
  change: string,
  words: Words,
  length: number,
  seal: string,
  hasTail: boolean,
];

/** A module's text, in the function around it. `sum`: a checksum. */
export interface Source {
  readonly text: string;
  readonly sum: number;
}

/** Reads modules, and code that V8 compiled of them. */
export interface NativeCode {
  /**
   * The text in an open file, between two others, and its checksum; undefined if it is not ASCII, or changes.
   */
  readSource(fd: number, before: string, after: string): Source | undefined;
  /** True if only root or this user can write to a folder. */
  isTrustedFolder(path: string): boolean;
  /**
   * Reads code that V8 compiled of the source with this checksum, at `path`, to `room`. Returns its size;
   * undefined if the file has none or is damaged, or it or its folder is not to be trusted.
   */
  readCode(name: string, path: string, sum: number, room: Buffer): number | undefined;
  /**
   * The text of a module, as {@link readSource} finds it, with the size of its compiled code in `folder`, as
   * {@link readCode} does; undefined unless it has both.
   */
  readModule(
    path: string,
    folder: string,
    room: Buffer,
    before: string,
    after: string,
  ): { text: string; size: number } | undefined;
  /** A file for {@link readCode}. */
  withHead(code: Buffer, path: string, sum: number): Buffer;
}
