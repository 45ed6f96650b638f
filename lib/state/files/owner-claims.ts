// Reads the files of owners without trusting them: what they claim, and whether their owners live.
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { isNumalignError, NumalignError, unlessRefused } from '../../base/errors.js';
import type { NativeFolder, OwnerLook } from '../../base/native-files.js';
import { isCgroupAlive } from '../../processes/cgroup-owner.js';
import { decodeOwnerFile, generationIn, kindIn, type OwnerFile, sealedPart } from '../format/owner-file.js';
import { type LocksOfFolder, locksOf, OwnerLocks } from './owner-locks.js';
import type { OwnerNames } from './owner-names.js';
import { sizeOf, whyUnreadable } from './state-files.js';

/** The names of owners' files. Other files in owners/ are ignored. */
export const OWNER_NAME = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const uuidsOf = (names: readonly string[]) => names.filter((name) => OWNER_NAME.test(name));

/** The uuid in the name of an owner's file, or of one that is being made. */
export const ownerIn = (name: string) => (name.endsWith('.new') ? name.slice(0, -'.new'.length) : name);

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
  /** With {@link OwnersSought.record}: some names, all of files without a lock among them. */
  readonly names?: readonly string[];
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
interface StateOnRecord {
  readonly generation: number;
  /** The uuids of the owners. */
  readonly owners: ReadonlySet<string>;
}

interface OwnersSought {
  /** This process's own file, as it knows it. */
  readonly ownFile?: OwnerFile | undefined;
  /** The state folder; if given, finds owners whose files were removed too. */
  readonly path?: string;
  /**
   * Skips files that add nothing to this state: unlocked files of owners on record, files of earlier
   * generations, and sealed files of this one that claim nothing.
   */
  readonly record?: StateOnRecord | undefined;
  /** If they are kept, no owner's file was removed. If all owners are found, they are from then on. */
  readonly names?: OwnerNames | undefined;
}

/**
 * Reads all owners' files. REQUIRES: the state's lock, because a file may be half written without
 * it.
 */
export function findOwners(owners: NativeFolder, bootId: string, sought: OwnersSought = {}): FoundOwners {
  const { path, record, names } = sought;
  if (path === undefined) return search(owners, bootId, sought);
  let seen: readonly string[] | undefined;
  const sumNow = () => {
    const survey = owners.survey(record?.generation);
    seen = record && survey.names;
    return survey.sum;
  };
  if (names?.areKept(sumNow)) {
    const found = search(owners, bootId, { ...sought, seen });
    if (names.areKept()) return found;
  }
  const find = () => {
    const locks = new OwnerLocks(owners, path);
    const found = search(owners, bootId, sought, locks);
    return {
      found,
      isComplete: found.unknown.length === 0 && locks.areUnderNamesIn(owners, uuidsOf(owners.list())),
    };
  };
  return (names?.keepAfter(find) ?? find()).found;
}

// Without `locks`, every owner's file is there.
function search(
  owners: NativeFolder,
  bootId: string,
  { ownFile, path, record, seen }: OwnersSought & { readonly seen?: readonly string[] | undefined },
  locks?: OwnerLocks,
): FoundOwners {
  const living: OwnerFile[] = ownFile ? [ownFile] : [];
  const unknown: UnknownOwner[] = [];
  let latest = ownFile;
  const listed = path === undefined ? undefined : locks ? () => locks : locksOf(owners, path);
  // Once with locks: an owner may write its removed file again meanwhile. A file that is not looked at
  // must not hide its lock.
  const all = locks && owners.list();
  const names = seen ?? (record ? owners.survey(record.generation, all).names : (all ?? owners.list()));
  for (const uuid of uuidsOf(names)) {
    if (uuid === ownFile?.uuid) continue;
    const look = lookAt(owners, uuid);
    if (!look && listed && isStray(owners, uuid, listed)) continue;
    const isOwnFile = look?.isLocked ?? isLocked(owners, uuid);
    const locked = isOwnFile || locks?.has(uuid) === true;
    if (!locked && record?.owners.has(uuid)) continue;
    try {
      const found = look?.bytes ?? readOwner(owners, uuid);
      // See needsNoLock. An error for each of many files would take long.
      if (!locked && found.length === 0) continue;
      const isSeal = (checksum: number) => look?.isLocked === true && isSealed(look, checksum);
      const bytes = locked ? sealedPart(found, isSeal) : found;
      if (!bytes) {
        const error = lostOwner(uuid, 'replaced or changed');
        unknown.push({ uuid, error, isFileLost: true, since: listed?.().since(uuid) ?? 0 });
        continue;
      }
      const isWhole = look?.seal !== undefined;
      if (record && (generationIn(bytes, isWhole) ?? Number.POSITIVE_INFINITY) < record.generation) continue;
      const file = decodeOwnerFile(bytes);
      if (file.uuid !== uuid) throw new NumalignError('ERR_STATE_CORRUPT', `it is of owner ${file.uuid}`);
      // A held lock belongs to this boot even if the boot id in the file differs: a container may
      // have its own boot id.
      if (file.bootId !== bootId && !locked) continue;
      if (file.generation >= (latest?.generation ?? 0)) latest = file;
      if (locked || (file.kind !== 'process' && isOwnerAlive(owners, file))) living.push(file);
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (locked || needsNoLock(owners, uuid))
        unknown.push({ uuid, error: unknownOwner(uuid, error), isFileLost: false, since: 0 });
    }
  }
  const withFile = [...uuidsOf(all ?? []), ...(ownFile ? [ownFile.uuid] : [])];
  for (const { uuid, since } of locks?.beside(withFile) ?? [])
    unknown.push({ uuid, error: lostOwner(`${uuid}…`, 'removed'), isFileLost: true, since });
  return { living, unknown, latest, ...(record && { names }) };
}

// Undefined if no ordinary file can be read there.
const lookAt = (owners: NativeFolder, uuid: string): OwnerLook | undefined =>
  unlessRefused(() => owners.lookAtOwner(uuid));

const isSealed = ({ seal }: OwnerLook, checksum: number) => seal === undefined || seal === checksum;

const isDamage = (error: unknown): error is NumalignError =>
  isNumalignError(error, 'ERR_STATE_CORRUPT', 'ERR_STATE_VERSION');

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
  try {
    const bytes = readOwner(owners, uuid);
    // Of a process that ended at once.
    if (bytes.length === 0) return false;
    decodeOwnerFile(bytes);
    return false;
  } catch (error) {
    if (!isDamage(error)) throw error;
    return error.code === 'ERR_STATE_VERSION';
  }
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
