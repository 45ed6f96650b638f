// OwnerLocks: the owners' locks as the kernel lists them, with those of owners whose files were
// removed or replaced.
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { throwIfExhausted } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import { inodeOf } from './state-files.js';

// How many hexadecimal digits of a uuid its lock shows: a lock starts below 2^60.
const START_DIGITS = 15;
// In RFC 9562 the third of these digits from the right is the version, 4.
const LEAST_START = 0x400n;
// Where seals begin.
const SEALS = 1n << 62n;

// The part of an owner's uuid that its lock shows.
const startOf = (uuid: string) => BigInt(`0x${uuid.replaceAll('-', '').slice(0, START_DIGITS)}`);

const MARK_BITS = 30;
const markOf = (text: string) => BigInt(native.crc32(text) >>> (32 - MARK_BITS));

/**
 * What tells a state folder from others. The path does not: each container has its own. `place`:
 * of the folder above and the name, which stay while the folder is removed and made again. `self`:
 * of the folder itself, which stays under any other path.
 */
function marksOf(path: string) {
  const options = { bigint: true, throwIfNoEntry: false } as const;
  const above = statSync(dirname(path), options);
  const folder = statSync(path, options);
  return {
    place: markOf(`${above?.ino} ${basename(path)}`),
    // The time tells it from a later folder with the same inode. The path: it may have been removed.
    self: markOf(`${folder?.ino} ${folder?.birthtimeNs ?? path}`),
  };
}

/**
 * The byte range that an owner of the state folder at `path` locks in its file. It tells a reader
 * of /proc/locks which owner and which folder the lock belongs to. The range lies behind the end of
 * the file, which fcntl_locking(2) allows.
 */
export function lockRange(uuid: string, path: string): [start: bigint, length: bigint] {
  const { place, self } = marksOf(path);
  return [startOf(uuid), 1n + (place << BigInt(MARK_BITS)) + self];
}

// The kernel lists locks in pieces of at most a page, or what is asked for. If a lock before a piece
// is dropped meanwhile, the first lock of the piece is missing. Each reading has others there.
const PIECE_BYTES = [1 << 16, 3500, 2900, 2300];
// A longer piece may be a full page.
const SURELY_ALL_BYTES = 3800;

/**
 * The lines of /proc/locks without their numbers; none if it cannot be read, as under systemd's
 * ProcSubset=pid.
 */
function readLocks(): ReadonlySet<string> {
  const lines = new Set<string>();
  try {
    for (const bytes of PIECE_BYTES) {
      const text = readPieces(bytes).join('');
      for (const line of text.split('\n')) if (line) lines.add(line.slice(line.indexOf(':') + 1));
      if (text.length < SURELY_ALL_BYTES) break;
    }
    return lines;
  } catch (error) {
    throwIfExhausted(error);
    return new Set();
  }
}

function readPieces(bytes: number): string[] {
  const file = openSync('/proc/locks', 'r');
  try {
    const buffer = Buffer.allocUnsafe(bytes);
    const pieces: string[] = [];
    for (let length = readSync(file, buffer); length > 0; length = readSync(file, buffer))
      pieces.push(buffer.toString('latin1', 0, length));
    return pieces;
  } finally {
    closeSync(file);
  }
}

/** The owners' locks of one state folder, as the kernel lists them now. */
export class OwnerLocks {
  // The inodes of an owner's files, by where its lock starts. It may hold former ones.
  readonly #inodes = new Map<bigint, string[]>();
  // See OwnOwner.since.
  readonly #since = new Map<string, number>();
  // True if the kernel lists locks for this process.
  readonly #areListed: boolean;

  /**
   * `owners`: the folder owners/ in the state folder at `path`.
   * @throws ERR_SYSCALL if the kernel does not list the locks of its file system
   */
  constructor(owners: NativeFolder, path: string) {
    const device = owners.lockDevice();
    const { place, self } = marksOf(path);
    const isOfFolder = (marks: bigint) =>
      marks >> BigInt(MARK_BITS) === place || BigInt.asUintN(MARK_BITS, marks) === self;
    const lines = readLocks();
    this.#areListed = lines.size > 0;
    for (const line of lines) {
      // proc_locks(5): open-file-description locks have the pid -1. Owners' locks are exclusive, their
      // seals shared.
      if (!line.includes(` -1 ${device}:`) || line.endsWith(' EOF')) continue;
      const [kind, , type, , file, first, last] = line.split(' ').filter(Boolean);
      if (kind !== 'OFDLCK' || last === undefined) continue;
      const inode = file!.slice(device.length + 1);
      const start = BigInt(first!);
      const length = BigInt(last) - start;
      if (type === 'READ' && start >= SEALS) this.#since.set(inode, Number(length));
      // The state's own lock starts at one of the first bytes, where no owner's lock starts.
      if (type === 'WRITE' && start >= LEAST_START && isOfFolder(length))
        this.#inodes.set(start, [...(this.#inodes.get(start) ?? []), inode]);
    }
  }

  /** True if the owner holds its lock, wherever its file is. */
  has(uuid: string): boolean {
    return this.#inodes.has(startOf(uuid));
  }

  /**
   * False if it certainly holds no lock. True if this process cannot see locks. REQUIRES: a lock is
   * held, such as the state's.
   */
  mayHave(uuid: string): boolean {
    return !this.#areListed || this.has(uuid);
  }

  /**
   * True if each lock is on the file with its owner's name in `owners`, which has these. A child may hold one of a
   * file that its parent wrote again. REQUIRES: as {@link mayHave}.
   */
  areUnderNamesIn(owners: NativeFolder, uuids: readonly string[]): boolean {
    const named = uuids.filter((uuid) => this.has(uuid));
    const inodes = new Map(named.map((name) => [startOf(name), inodeOf(owners.version(name) ?? '')]));
    const isNamed = ([start, held]: [bigint, string[]]) => held.every((inode) => inode === inodes.get(start));
    return this.#areListed && [...this.#inodes].every(isNamed);
  }

  /** The generation that the owner's seal shows; 0 for an owner of an earlier version. */
  since(uuid: string): number {
    return this.#sinceOf(startOf(uuid));
  }

  #sinceOf(start: bigint): number {
    return Math.max(0, ...(this.#inodes.get(start) ?? []).map((inode) => this.#since.get(inode) ?? 0));
  }

  /** The other owners that hold locks, by the beginnings of their uuids: their files were removed. */
  beside(uuids: readonly string[]) {
    const excluded = new Set(uuids.map(startOf));
    const others = [...this.#inodes.keys()].filter((start) => !excluded.has(start));
    return others.map((start) => {
      const digits = start.toString(16).padStart(START_DIGITS, '0');
      const uuid = `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12)}`;
      return { uuid, since: this.#sinceOf(start) };
    });
  }
}

/** The locks of one moment. They are read when they are first needed. */
export type LocksOfFolder = () => Pick<OwnerLocks, 'has' | 'mayHave'>;

/** As {@link OwnerLocks}. */
export function locksOf(owners: NativeFolder, path: string): () => OwnerLocks {
  let locks: OwnerLocks | undefined;
  return () => (locks ??= new OwnerLocks(owners, path));
}
