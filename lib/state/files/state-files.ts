// The files of a state folder, read without trusting them: which are good, which are damaged, and
// what the owners' files say.
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { NumalignError } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import { inOneGo, type Steps } from '../../base/steps.js';
import { isCgroupAlive } from '../../processes/cgroup-owner.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { highestIn, type Journal, journalSteps } from '../format/journal.js';
import { decodeOwnerFile, generationIn, kindIn, OWNER_FORMAT, type OwnerFile } from '../format/owner-file.js';
import { checksum, isNewer } from '../format/sealed-json.js';
import { OwnerLocks } from './owner-locks.js';

export const STATE_FILE = 'state.json';
/** The same lines, not synced: for the day on which the file is lost. */
export const COPY_FILE = 'state.copy.json';
/** Has the highest generation that was committed: state.json may be put back from a copy. */
export const LOCK_FILE = 'lock';

/** The size of a file in its version, which is inode:size:time. */
export const sizeOf = (version: string) => Number(version.split(':')[1]);

/** A name in owners/ that can be an owner's; whatever else is there is not ours. */
export const OWNER_NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export interface GoodState extends Journal {
  readonly kind: 'good';
}

export interface DamagedState {
  readonly kind: 'damaged';
  readonly why: string;
  /** What it looks like; 0 where it looks like none. */
  readonly generation: number;
  /** Of a file that is whole, and out of place, or of what is whole of it. */
  readonly checkpoint?: Checkpoint | undefined;
  readonly bytes?: Buffer | undefined;
  readonly isFolder?: boolean;
}

export type FoundState = { readonly kind: 'missing' } | GoodState | DamagedState;

export function damaged(
  why: string,
  { bytes, generation, ...known }: Partial<Omit<DamagedState, 'kind' | 'why'>>,
): DamagedState {
  return { kind: 'damaged', why, generation: generation ?? (bytes ? highestIn(bytes) : 0), bytes, ...known };
}

// What is there is no file of ours, or cannot be one: a link, a folder, a device, far too large.
const NO_STATE_FILE: Readonly<Record<string, string>> = {
  ELOOP: 'it is a symbolic link',
  EISDIR: 'it is a folder',
  ENXIO: 'it is no ordinary file',
  ENODEV: 'it is no ordinary file',
  EFBIG: 'it is far too large',
};

/**
 * Reads a state file. That in force must have every generation that was committed. `known`: what
 * was found before, which need not be decoded where the file has the same bytes.
 * @throws ERR_STATE_VERSION, and ERR_SYSCALL where it cannot be read for reasons that say nothing
 *   about the file
 */
export function findState(folder: NativeFolder, name: string, known?: GoodState): FoundState {
  // Before the file is read: it is written after each commit.
  const highest = name === STATE_FILE ? highestOf(folder) : 0;
  let bytes: Buffer | undefined;
  try {
    bytes = folder.read(name);
  } catch (error) {
    const found = whyUnreadable(folder, error);
    if (found === undefined) throw error;
    return found;
  }
  return bytes ? judgeState(bytes, highest, known) : { kind: 'missing' };
}

// The checksum of the whole file, for what was found in it.
const sums = new WeakMap<GoodState, string>();

/**
 * Whether the bytes of a state file are good. `highest`: the generation that they must have at
 * least. `known`: as for {@link findState}.
 * @throws ERR_STATE_VERSION
 */
export const judgeState = (bytes: Buffer, highest: number, known?: GoodState): GoodState | DamagedState =>
  inOneGo(judgementSteps(bytes, highest, known));

/** As {@link judgeState}, of a file that may be long. @throws as that */
export function* judgementSteps(
  bytes: Buffer,
  highest: number,
  known?: GoodState,
): Steps<GoodState | DamagedState> {
  try {
    const sum = checksum(bytes);
    // Node has loaded a part of itself for it.
    yield;
    const { checkpoint, place } = known && sums.get(known) === sum ? known : yield* journalSteps(bytes);
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

/** What an error says of a file that was to be read; undefined where it says nothing of the file. */
export function whyUnreadable(folder: NativeFolder, error: unknown): DamagedState | undefined {
  if (!(error instanceof NumalignError) || error.code !== 'ERR_SYSCALL') throw error;
  const name = error.errnoName ?? '';
  // In our own folder no file of ours is closed to us. In another's it may be.
  if (name === 'EACCES')
    return folder.owner().user === process.geteuid?.() ? damaged('it is unreadable', {}) : undefined;
  const why = NO_STATE_FILE[name];
  return why === undefined ? undefined : damaged(why, { isFolder: name === 'EISDIR' });
}

/** The highest generation that is known to have been committed; 0 where nothing says so. */
export const highestOf = (folder: NativeFolder) => folder.lockNumber(LOCK_FILE);

/** The generation that a file has; undefined where it is no good, or there is none. */
export function committedIn(folder: NativeFolder, name: string): number | undefined {
  try {
    const found = findState(folder, name);
    return found.kind === 'good' ? found.checkpoint.generation : undefined;
  } catch (error) {
    if (error instanceof NumalignError) return undefined;
    throw error;
  }
}

/** An owner that lives, or may, and of which nobody can tell what it holds. */
export interface UnknownOwner {
  /** How its uuid begins, where its file was removed: then it may write that again. */
  readonly uuid: string;
  readonly isFileMissing: boolean;
  /** ERR_STATE_CORRUPT, or ERR_STATE_VERSION. */
  readonly error: NumalignError;
}

export interface FoundOwners {
  /** Of owners that live. */
  readonly living: readonly OwnerFile[];
  readonly unknown: readonly UnknownOwner[];
  /**
   * The readable one that was written at the highest generation of this boot, its owner dead or
   * alive.
   */
  readonly latest: OwnerFile | undefined;
}

export const NO_OWNERS: FoundOwners = { living: [], unknown: [], latest: undefined };

/**
 * Whether somebody holds the lock of an owner's file. With the `path` of the state folder also
 * where that file was removed, and may be another now. What cannot be opened may be locked.
 */
export function isLocked(owners: NativeFolder, uuid: string, path?: string): boolean {
  try {
    return owners.isOwnerAlive(uuid) || (path !== undefined && new OwnerLocks(owners, path).has(uuid));
  } catch (error) {
    if (
      error instanceof NumalignError &&
      ['ELOOP', 'EISDIR', 'ENXIO', 'EACCES'].includes(error.errnoName ?? '')
    ) {
      return true;
    }
    throw error;
  }
}

/** Whether an owner on record lives. `path`: as for {@link isLocked}. */
export function isOwnerAlive(
  owners: NativeFolder | undefined,
  { kind, uuid, cgroup }: Pick<OwnerRecord, 'kind' | 'uuid' | 'cgroup'>,
  path?: string,
): boolean {
  if (kind === 'cgroup') return cgroup !== null && isCgroupAlive(cgroup);
  return kind === 'persistent' || (owners !== undefined && isLocked(owners, uuid, path));
}

/** A state against which owners' files are held. */
export interface OnRecord {
  readonly generation: number;
  /** The uuids of the owners. */
  readonly owners: ReadonlySet<string>;
}

/**
 * Reads all owners' files. `own`: what this process itself knows to be in its file. `path`: of the
 * state folder, to find those too whose files were removed. `known`: files that say no more than
 * this are passed over: those of owners on record that are not locked, and those that were written
 * at an earlier generation. REQUIRES: the state's lock, else a file may be half written.
 */
export function findOwners(
  owners: NativeFolder,
  bootId: string,
  own?: OwnerFile,
  path?: string,
  known?: OnRecord,
): FoundOwners {
  const living: OwnerFile[] = own ? [own] : [];
  const unknown: UnknownOwner[] = [];
  let latest = own;
  const uuids = owners.list().filter((name) => OWNER_NAME.test(name));
  const locks = path === undefined ? undefined : new OwnerLocks(owners, path);
  for (const uuid of uuids) {
    if (uuid === own?.uuid) continue;
    const locked = isLocked(owners, uuid) || locks?.has(uuid) === true;
    if (!locked && known?.owners.has(uuid)) continue;
    try {
      const bytes = readOwner(owners, uuid);
      if (known && (generationIn(bytes) ?? Number.POSITIVE_INFINITY) < known.generation) continue;
      const file = decodeOwnerFile(bytes);
      if (file.uuid !== uuid) throw new NumalignError('ERR_STATE_CORRUPT', `it is of owner ${file.uuid}`);
      // A lock that is held is of this boot, whatever the file says: containers may have boot ids
      // of their own.
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
        unknown.push({ uuid, error: unknownOwner(uuid, error), isFileMissing: false });
    }
  }
  const withFile = own ? [...uuids, own.uuid] : uuids;
  for (const uuid of locks?.beside(withFile) ?? []) {
    const cause = new NumalignError(
      'ERR_STATE_CORRUPT',
      'its file was removed, and it has not written it again',
    );
    unknown.push({ uuid, error: unknownOwner(`${uuid}…`, cause), isFileMissing: true });
  }
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

// Processes write in place, and a torn or empty file without a lock is a dead one's. The files of
// other owners come into being whole.
function needsNoLock(owners: NativeFolder, uuid: string): boolean {
  const bytes = readOwner(owners, uuid);
  return bytes.length > 0 && kindIn(bytes) !== 'process';
}

function unknownOwner(uuid: string, cause: NumalignError): NumalignError {
  return new NumalignError(
    cause.code,
    `the state is damaged, and nobody can tell what the owner of owners/${uuid} holds: ${cause.message}; nothing is granted before it has ended and the file is gone`,
    { value: `owners/${uuid}`, cause },
  );
}

/**
 * Whether what was written with this boot id is of the boot that has the id `here`: memory does not
 * outlive a boot, nor does a lock. A container may have a boot id of its own.
 */
export function isOfBoot(bootId: string, here: string, owners: NativeFolder | undefined): boolean {
  if (bootId === here) return true;
  if (!owners) return false;
  const isLiving = ({ kind, bootId: its }: OwnerFile) => kind === 'process' && its === bootId;
  return owners.isInMemory() || findOwners(owners, here).living.some(isLiving);
}

/**
 * Whether a file in owners/ was written by a newer numalign, which alone knows what it is good for.
 */
export function isNewerOwner(owners: NativeFolder, uuid: string): boolean {
  const bytes = readOwner(owners, uuid);
  return isNewer(OWNER_FORMAT, bytes);
}
