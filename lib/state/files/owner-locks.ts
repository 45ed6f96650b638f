// OwnerLocks: the locks of owners as the kernel lists them, also of owners whose files were
// removed.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { NativeFolder } from '../../base/native-files.js';

// The hexadecimal digits of a uuid that its lock shows: a lock starts below 2^62.
const START_DIGITS = 15;
const LENGTH_DIGITS = 12;
// RFC 9562 has the version, 4, as the third of these digits from the right.
const LEAST_START = 0x400n;

// How the uuid of an owner begins, as far as its lock shows it.
const startOf = (uuid: string) => BigInt(`0x${uuid.replaceAll('-', '').slice(0, START_DIGITS)}`);

let lastLength: { readonly path: string; readonly length: bigint } | undefined;

/** `path`: of the state folder. The same for every process that calls it so. */
function lengthOf(path: string): bigint {
  if (lastLength?.path !== path) {
    const digits = createHash('sha256').update(path).digest('hex').slice(0, LENGTH_DIGITS);
    lastLength = { path, length: 1n + BigInt(`0x${digits}`) };
  }
  return lastLength.length;
}

/**
 * The bytes of an owner's file that its lock covers, so that /proc/locks tells whose it is, and of
 * which state folder. No file is that long, and none need be: fcntl_locking(2).
 */
export function lockRange(uuid: string, path: string): [start: bigint, length: bigint] {
  return [startOf(uuid), lengthOf(path)];
}

// As proc_locks(5) writes a device: of numbers that stat(2) gives as one.
function deviceOf(folder: NativeFolder): string {
  const device = BigInt(folder.identity().split(':')[0]!);
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn);
  return [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
}

// proc_locks(5): such locks are of no process, -1.
const LOCK = /^\d+: OFDLCK +\S+ +WRITE +-1 (\w+:\w+):\d+ (\d+) (\d+)$/gm;

// The kernel lists locks in pieces of a page, between which one may be missed.
const PIECE_BYTES = 4000;
const READS = 3;

/** What /proc/locks lists; empty where it is closed, as with systemd's ProcSubset=pid. */
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

/** A lock of an owner of some state folder, by the bytes that it covers. */
interface ListedLock {
  readonly start: bigint;
  readonly length: bigint;
}

// On the file system of a folder.
function locksBeside(folder: NativeFolder): ListedLock[] {
  const device = deviceOf(folder);
  const locks: ListedLock[] = [];
  for (const [, on, start, end] of readLocks().matchAll(LOCK)) {
    const lock = { start: BigInt(start!), length: BigInt(end!) - BigInt(start!) + 1n };
    // The state's own lock is on one of the first bytes, on which no owner's starts.
    if (on === device && lock.start >= LEAST_START) locks.push(lock);
  }
  return locks;
}

/**
 * The locks of owners in a state folder as the kernel lists them now. The length of a lock, for
 * which Node has to load its cryptography, is looked at last.
 */
export class OwnerLocks {
  readonly #locks: readonly ListedLock[];
  readonly #path: string;

  /** `owners`: owners/ of the state folder at `path`. */
  constructor(owners: NativeFolder, path: string) {
    this.#locks = locksBeside(owners);
    this.#path = path;
  }

  #isOwn({ length }: ListedLock): boolean {
    return length === lengthOf(this.#path);
  }

  /** Whether an owner holds its lock, wherever its file is. */
  has(uuid: string): boolean {
    const begin = startOf(uuid);
    return this.#locks.some((lock) => lock.start === begin && this.#isOwn(lock));
  }

  /** How the uuids begin of owners that are not among these: their files were removed. */
  beside(uuids: readonly string[]): string[] {
    const known = new Set(uuids.map(startOf));
    const others = this.#locks.filter((lock) => !known.has(lock.start) && this.#isOwn(lock));
    return [...new Set(others.map(({ start }) => start))].map((start) => {
      const digits = start.toString(16).padStart(START_DIGITS, '0');
      return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12)}`;
    });
  }
}
