// OwnerLocks: the owners' locks as the kernel lists them, with those of owners whose files were
// removed.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { NativeFolder } from '../../base/native-files.js';

// How many hexadecimal digits of a uuid its lock shows: a lock starts below 2^62.
const START_DIGITS = 15;
const LENGTH_DIGITS = 12;
// In RFC 9562 the third of these digits from the right is the version, 4.
const LEAST_START = 0x400n;

// The part of an owner's uuid that its lock shows.
const startOf = (uuid: string) => BigInt(`0x${uuid.replaceAll('-', '').slice(0, START_DIGITS)}`);

let lastLength: { readonly path: string; readonly length: bigint } | undefined;

/** `path`: the state folder. Equal for all processes that use the same path. */
function lengthOf(path: string): bigint {
  if (lastLength?.path !== path) {
    const digits = createHash('sha256').update(path).digest('hex').slice(0, LENGTH_DIGITS);
    lastLength = { path, length: 1n + BigInt(`0x${digits}`) };
  }
  return lastLength.length;
}

/**
 * The byte range that an owner locks in its file. It tells a reader of /proc/locks which owner and
 * which state folder the lock belongs to. The range lies behind the end of the file, which
 * fcntl_locking(2) allows.
 */
export function lockRange(uuid: string, path: string): [start: bigint, length: bigint] {
  return [startOf(uuid), lengthOf(path)];
}

// Writes the device number of stat(2) as proc_locks(5) does.
function deviceOf(folder: NativeFolder): string {
  const device = BigInt(folder.identity().split(':')[0]!);
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn);
  return [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
}

// proc_locks(5): open-file-description locks have the pid -1.
const LOCK = /^\d+: OFDLCK +\S+ +WRITE +-1 (\w+:\w+):\d+ (\d+) (\d+)$/gm;

// The kernel lists locks a page at a time and may miss one between pages.
const PIECE_BYTES = 4000;
const READS = 3;

/** The text of /proc/locks; empty if it cannot be read, as under systemd's ProcSubset=pid. */
function readLocks(): string {
  try {
    let all = readFileSync('/proc/locks', 'latin1');
    for (let reads = 1; all.length > PIECE_BYTES && reads < READS; reads++)
      all += readFileSync('/proc/locks', 'latin1');
    return all;
  } catch {
    return '';
  }
}

/** An owner's lock in some state folder, by its byte range. */
interface ListedLock {
  readonly start: bigint;
  readonly length: bigint;
}

// Locks on the file system of the folder.
function locksBeside(folder: NativeFolder): ListedLock[] {
  const device = deviceOf(folder);
  const locks: ListedLock[] = [];
  for (const [, on, start, end] of readLocks().matchAll(LOCK)) {
    const lock = { start: BigInt(start!), length: BigInt(end!) - BigInt(start!) + 1n };
    // The state's own lock starts at one of the first bytes, where no owner's lock starts.
    if (on === device && lock.start >= LEAST_START) locks.push(lock);
  }
  return locks;
}

/**
 * The owners' locks of one state folder, as the kernel lists them now. Checks lengths last, because
 * they make Node load its crypto module.
 */
export class OwnerLocks {
  readonly #locks: readonly ListedLock[];
  readonly #path: string;

  /** `owners`: the folder owners/ in the state folder at `path`. */
  constructor(owners: NativeFolder, path: string) {
    this.#locks = locksBeside(owners);
    this.#path = path;
  }

  #isOfFolder({ length }: ListedLock): boolean {
    return length === lengthOf(this.#path);
  }

  /** True if the owner holds its lock, wherever its file is. */
  has(uuid: string): boolean {
    const begin = startOf(uuid);
    return this.#locks.some((lock) => lock.start === begin && this.#isOfFolder(lock));
  }

  /** The beginnings of other owners' uuids: owners that hold locks and whose files were removed. */
  beside(uuids: readonly string[]): string[] {
    const excluded = new Set(uuids.map(startOf));
    const others = this.#locks.filter((lock) => !excluded.has(lock.start) && this.#isOfFolder(lock));
    return [...new Set(others.map(({ start }) => start))].map((start) => {
      const digits = start.toString(16).padStart(START_DIGITS, '0');
      return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12)}`;
    });
  }
}

/** False if this process cannot see locks. REQUIRES: a lock is held, such as the state's. */
export const canListLocks = (): boolean => readLocks() !== '';
