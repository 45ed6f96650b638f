// OwnerLocks: the locks of owners as the kernel lists them, also of owners whose files were
// removed.
import { readFileSync } from 'node:fs';
import { createHash } from '../../base/builtins.js';
import type { NativeFolder } from '../../base/native-files.js';

// The hexadecimal digits of a uuid that its lock shows: a lock starts below 2^62.
const START_DIGITS = 15;
const LENGTH_DIGITS = 12;

/** How the uuid of an owner begins, as far as its lock shows it. */
const prefixOf = (uuid: string) => uuid.replaceAll('-', '').slice(0, START_DIGITS);

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
  return [BigInt(`0x${prefixOf(uuid)}`), lengthOf(path)];
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

/**
 * The locks of owners in the state folder at `path`, on the file system of `folder`, by where they
 * start.
 */
export function lockStarts(folder: NativeFolder, path: string): ReadonlySet<bigint> {
  const device = deviceOf(folder);
  const starts = new Set<bigint>();
  for (const [, on, start, end] of readLocks().matchAll(LOCK)) {
    if (on === device && BigInt(end!) - BigInt(start!) + 1n === lengthOf(path)) starts.add(BigInt(start!));
  }
  return starts;
}

/**
 * Whether an owner in the state folder at `path` holds its lock, wherever its file is. `owners`:
 * owners/ of it.
 */
export function holdsLock(owners: NativeFolder, path: string, uuid: string): boolean {
  return lockStarts(owners, path).has(lockRange(uuid, path)[0]);
}

/**
 * How the uuids begin of owners in the state folder at `path` that hold these locks and are not
 * among `uuids`: their files were removed.
 */
export function ownersWithoutFile(
  starts: ReadonlySet<bigint>,
  path: string,
  uuids: readonly string[],
): string[] {
  const left = new Set(starts);
  for (const uuid of uuids) left.delete(lockRange(uuid, path)[0]);
  return [...left].map((start) => {
    const digits = start.toString(16).padStart(START_DIGITS, '0');
    return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12)}`;
  });
}
