// Reads the files of a state folder without trusting them: which are good, which are damaged, and
// what the owners' files claim.
import { crc32 } from 'node:zlib';
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { NumalignError } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import { inOneGo, type Steps } from '../../base/steps.js';
import { isCgroupAlive } from '../../processes/cgroup-owner.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { highestIn, type Journal, journalSteps } from '../format/journal.js';
import { decodeOwnerFile, generationIn, kindIn, OWNER_FORMAT, type OwnerFile } from '../format/owner-file.js';
import { checksum, isNewer } from '../format/sealed-json.js';
import { type LocksOfFolder, OwnerLocks } from './owner-locks.js';

export const STATE_FILE = 'state.json';
/** The same lines without sync, for recovery if state.json is lost. */
export const COPY_FILE = 'state.copy.json';
/**
 * Holds the highest committed generation: it exposes a state.json that was restored from a backup.
 */
export const LOCK_FILE = 'lock';

/** The size in a file's version, which reads inode:size:time. */
export const sizeOf = (version: string) => Number(version.split(':')[1]);

/** The names of owners' files. Other files in owners/ are ignored. */
export const OWNER_NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The uuid in the name of an owner's file, or of one that is being made. */
export const ownerIn = (name: string) => name.replace(/\.new$/, '');

export interface GoodState extends Journal {
  readonly kind: 'good';
}

export interface DamagedState {
  readonly kind: 'damaged';
  readonly why: string;
  /** The generation that the file seems to have; 0 if it shows none. */
  readonly generation: number;
  /** The checkpoint of a file that is whole but out of date, or the whole part of a damaged one. */
  readonly checkpoint?: Checkpoint | undefined;
  readonly bytes?: Buffer | undefined;
  readonly isFolder?: boolean;
}

export type FoundState = { readonly kind: 'missing' } | GoodState | DamagedState;

export function damaged(
  why: string,
  { bytes, generation, ...facts }: Partial<Omit<DamagedState, 'kind' | 'why'>>,
): DamagedState {
  return { kind: 'damaged', why, generation: generation ?? (bytes ? highestIn(bytes) : 0), bytes, ...facts };
}

// The name leads to something else than a file of numalign: a link, a folder, a device, or a file
// too large.
const NO_STATE_FILE: Readonly<Record<string, string>> = {
  ELOOP: 'it is a symbolic link',
  EISDIR: 'it is a folder',
  ENXIO: 'it is not an ordinary file',
  ENODEV: 'it is not an ordinary file',
  EFBIG: 'it is far too large',
};

/**
 * Reads a state file. state.json must have every committed generation. `previous`: an earlier
 * result; it is reused if the file has the same bytes.
 * @throws ERR_STATE_VERSION, and ERR_SYSCALL if the file cannot be read for reasons outside the
 *   file
 */
export function findState(folder: NativeFolder, name: string, previous?: GoodState): FoundState {
  // Read before the file, because it is written after each commit.
  const highest = name === STATE_FILE ? highestOf(folder) : 0;
  let bytes: Buffer | undefined;
  try {
    bytes = folder.read(name);
  } catch (error) {
    const found = whyUnreadable(folder, error);
    if (found === undefined) throw error;
    return found;
  }
  return bytes ? judgeState(bytes, highest, previous) : { kind: 'missing' };
}

// The checksum of the whole file behind each result.
const sums = new WeakMap<GoodState, string>();

/**
 * Judges the bytes of a state file. `highest`: the lowest generation that passes. `previous`: as in
 * {@link findState}.
 * @throws ERR_STATE_VERSION
 */
export const judgeState = (bytes: Buffer, highest: number, previous?: GoodState): GoodState | DamagedState =>
  inOneGo(judgementSteps(bytes, highest, previous));

/** Like {@link judgeState}, in steps for a long file. @throws the same codes */
export function* judgementSteps(
  bytes: Buffer,
  highest: number,
  previous?: GoodState,
): Steps<GoodState | DamagedState> {
  try {
    const sum = checksum(bytes);
    // The checksum made Node load its crypto module.
    yield;
    const { checkpoint, place } =
      previous && sums.get(previous) === sum ? previous : yield* journalSteps(bytes);
    const { generation } = checkpoint;
    if (generation >= highest || checkpoint.refusal) {
      const good: GoodState = { kind: 'good', checkpoint, place };
      sums.set(good, sum);
      return good;
    }
    const why = place.hasTail
      ? `the state file is damaged: what follows generation ${generation} is not whole, and generation ${highest} was committed`
      : `it is older than generation ${highest}, which was committed here`;
    return damaged(why, { bytes, generation: Math.max(highest, highestIn(bytes)), checkpoint });
  } catch (error) {
    if (!(error instanceof NumalignError) || error.code !== 'ERR_STATE_CORRUPT') throw error;
    return damaged(error.message, { bytes });
  }
}

/**
 * Reads what an error says about a file. Returns undefined if the error has another cause than the
 * file.
 */
export function whyUnreadable(folder: NativeFolder, error: unknown): DamagedState | undefined {
  if (!(error instanceof NumalignError) || error.code !== 'ERR_SYSCALL') throw error;
  const name = error.errnoName ?? '';
  // In this user's own folder, EACCES means damage. In another user's folder it may be normal.
  if (name === 'EACCES')
    return folder.owner().user === process.geteuid!() ? damaged('it is unreadable', {}) : undefined;
  const why = NO_STATE_FILE[name];
  return why === undefined ? undefined : damaged(why, { isFolder: name === 'EISDIR' });
}

/** The highest generation on record as committed; 0 if there is none. */
export const highestOf = (folder: NativeFolder) => folder.lockNumber(LOCK_FILE);

/** The generation of a file; undefined if it is damaged or missing. */
export function committedIn(folder: NativeFolder, name: string): number | undefined {
  try {
    const found = findState(folder, name);
    return found.kind === 'good' ? found.checkpoint.generation : undefined;
  } catch (error) {
    if (error instanceof NumalignError) return undefined;
    throw error;
  }
}

/** An owner that lives or may live, whose holdings cannot be read. */
export interface UnknownOwner {
  /** Only the beginning if its file was removed. */
  readonly uuid: string;
  /** True if other programs removed, replaced or changed its file. The owner may write it again. */
  readonly isFileLost: boolean;
  /** The first generation that has all that the owner has claimed; 0 if unknown. */
  readonly since: number;
  /** Has the code ERR_STATE_CORRUPT or ERR_STATE_VERSION. */
  readonly error: NumalignError;
}

export interface FoundOwners {
  /** The files of living owners. */
  readonly living: readonly OwnerFile[];
  readonly unknown: readonly UnknownOwner[];
  /** The readable file with the highest generation of this boot. Its owner may be dead. */
  readonly latest: OwnerFile | undefined;
}

export const NO_OWNERS: FoundOwners = { living: [], unknown: [], latest: undefined };

/**
 * True if a process holds the lock of an owner's file. With the `locks` of the state folder, also
 * finds the lock of a removed or replaced file. What cannot be opened counts as locked, unless the
 * kernel shows that no lock was there.
 */
export function isLocked(owners: NativeFolder, uuid: string, locks?: LocksOfFolder): boolean {
  try {
    return owners.isOwnerAlive(uuid) || (locks?.().has(uuid) ?? false);
  } catch (error) {
    if (isNoFile(error)) return locks?.().mayHave(uuid) ?? true;
    if (error instanceof NumalignError && error.errnoName === 'EACCES') return true;
    throw error;
  }
}

/** True if an owner on record lives. `locks`: as in {@link isLocked}. */
export function isOwnerAlive(
  owners: NativeFolder | undefined,
  { kind, uuid, cgroup }: Pick<OwnerRecord, 'kind' | 'uuid' | 'cgroup'>,
  locks?: LocksOfFolder,
): boolean {
  if (kind === 'cgroup') return cgroup !== null && isCgroupAlive(cgroup);
  return kind === 'persistent' || (owners !== undefined && isLocked(owners, uuid, locks));
}

/** A state to compare owners' files with. */
export interface OnRecord {
  readonly generation: number;
  /** The uuids of the owners. */
  readonly owners: ReadonlySet<string>;
}

/**
 * Reads all owners' files. `ownFile`: this process's own file, as it knows it. `path`: the state
 * folder; if given, finds owners whose files were removed too. `record`: skips files that add
 * nothing to this state, which are unlocked files of owners on record and files of earlier
 * generations. REQUIRES: the state's lock, because a file may be half written without it.
 */
export function findOwners(
  owners: NativeFolder,
  bootId: string,
  ownFile?: OwnerFile,
  path?: string,
  record?: OnRecord,
): FoundOwners {
  const living: OwnerFile[] = ownFile ? [ownFile] : [];
  const unknown: UnknownOwner[] = [];
  let latest = ownFile;
  const uuids = owners.list().filter((name) => OWNER_NAME.test(name));
  const locks = path === undefined ? undefined : new OwnerLocks(owners, path);
  for (const uuid of uuids) {
    if (uuid === ownFile?.uuid || (locks && isStray(owners, uuid, () => locks))) continue;
    const isOwnFile = isLocked(owners, uuid);
    const locked = isOwnFile || locks?.has(uuid) === true;
    if (!locked && record?.owners.has(uuid)) continue;
    try {
      const bytes = readOwner(owners, uuid);
      // See needsNoLock. An error for each of many files would take long.
      if (!locked && bytes.length === 0) continue;
      if (locked && !(isOwnFile && owners.agreesWithSeal(uuid, crc32(bytes)))) {
        const error = lostOwner(uuid, 'replaced or changed');
        unknown.push({ uuid, error, isFileLost: true, since: locks?.since(uuid) ?? 0 });
        continue;
      }
      if (record && (generationIn(bytes) ?? Number.POSITIVE_INFINITY) < record.generation) continue;
      const file = decodeOwnerFile(bytes);
      if (file.uuid !== uuid) throw new NumalignError('ERR_STATE_CORRUPT', `it is of owner ${file.uuid}`);
      // A held lock belongs to this boot even if the boot id in the file differs: a container may
      // have its own boot id.
      if (file.bootId !== bootId && !locked) continue;
      if (file.generation >= (latest?.generation ?? 0)) latest = file;
      if (locked || (file.kind !== 'process' && isOwnerAlive(owners, file))) living.push(file);
    } catch (error) {
      if (
        !(error instanceof NumalignError) ||
        !['ERR_STATE_CORRUPT', 'ERR_STATE_VERSION'].includes(error.code)
      )
        throw error;
      if (locked || needsNoLock(owners, uuid))
        unknown.push({ uuid, error: unknownOwner(uuid, error), isFileLost: false, since: 0 });
    }
  }
  const withFile = ownFile ? [...uuids, ownFile.uuid] : uuids;
  for (const { uuid, since } of locks?.beside(withFile) ?? [])
    unknown.push({ uuid, error: lostOwner(`${uuid}…`, 'removed'), isFileLost: true, since });
  return { living, unknown, latest };
}

function readOwner(owners: NativeFolder, uuid: string): Buffer {
  try {
    return owners.read(uuid) ?? Buffer.alloc(0);
  } catch (error) {
    const why = whyUnreadable(owners, error)?.why ?? (error as Error).message;
    throw new NumalignError('ERR_STATE_CORRUPT', why, { cause: error });
  }
}

// A process writes its file in place, so a torn or empty file without a lock belongs to a dead
// process. Files of other owners appear whole.
function needsNoLock(owners: NativeFolder, uuid: string): boolean {
  const bytes = readOwner(owners, uuid);
  return bytes.length > 0 && kindIn(bytes) !== 'process';
}

function lostOwner(uuid: string, what: string): NumalignError {
  const why = `its file was ${what}, and it is stopped or too busy to write it again`;
  return unknownOwner(uuid, new NumalignError('ERR_STATE_CORRUPT', why), 'that owner writes it, or ends');
}

function unknownOwner(
  uuid: string,
  cause: NumalignError,
  valid = 'that owner ends and the file is removed',
): NumalignError {
  return new NumalignError(
    cause.code,
    `the state is damaged, and the holdings of the owner of owners/${uuid} are unknown: ${cause.message}; numalign grants nothing until ${valid}`,
    { value: `owners/${uuid}`, cause },
  );
}

/**
 * True if a text with this boot id belongs to the boot with the id `currentBootId`. Neither memory nor a
 * lock outlives a boot. A container may have its own boot id.
 */
export function isOfBoot(bootId: string, currentBootId: string, owners: NativeFolder | undefined): boolean {
  if (bootId === currentBootId) return true;
  if (!owners) return false;
  // Of an owner that lives with another boot id, a process holds the lock.
  return (
    owners.isInMemory() || findOwners(owners, currentBootId).living.some((each) => each.bootId === bootId)
  );
}

/** True if a newer numalign wrote this file in owners/. Only that version can judge it. */
export function isNewerOwner(owners: NativeFolder, uuid: string): boolean {
  const bytes = readOwner(owners, uuid);
  return isNewer(OWNER_FORMAT, bytes);
}

// No owner's file is longer. The addon reads no longer ones.
const MOST_BYTES = 256 << 20;

/**
 * True if what has the name in owners/ was written by no owner (a folder, a link, a pipe, a file far
 * too large) and hides no living one. REQUIRES: the state's lock, because it shows in `locks`.
 */
export function isStray(owners: NativeFolder, name: string, locks: LocksOfFolder): boolean {
  try {
    owners.isOwnerAlive(name);
    if (sizeOf(owners.version(name) ?? '0:0') <= MOST_BYTES) return false;
  } catch (error) {
    if (!isNoFile(error)) return false;
  }
  return !locks().mayHave(ownerIn(name));
}

const isNoFile = (error: unknown) =>
  error instanceof NumalignError && /^E(LOOP|ISDIR|NXIO)$/.test(error.errnoName ?? '');
