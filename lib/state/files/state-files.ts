// Reads the files of a state without trusting them: which are good, and which are damaged.
import { isNumalignError, NumalignError } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import { finish, type Steps } from '../../base/steps.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { highestIn, type Journal, journalSteps } from '../format/journal.js';
import { checksum } from '../format/sealed-json.js';

export const STATE_FILE = 'state.json';
/** The same lines without sync, for recovery if state.json is lost. */
export const COPY_FILE = 'state.copy.json';
/** The lines of the state.json before, which nothing depends on. */
export const EARLIER_FILE = 'state.earlier.json';
/**
 * Holds the highest committed generation: it exposes a state.json that was restored from a backup.
 */
export const LOCK_FILE = 'lock';

/** The inode in a file's version, which reads inode:size:time. */
export const inodeOf = (version: string) => version.slice(0, version.indexOf(':'));

/** The size in it. */
export const sizeOf = (version: string) => Number.parseInt(version.slice(version.indexOf(':') + 1), 10);

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
const noStateFile = (): Readonly<Record<string, string>> => ({
  ELOOP: 'it is a symbolic link',
  EISDIR: 'it is a folder',
  ENXIO: 'it is not an ordinary file',
  ENODEV: 'it is not an ordinary file',
  EFBIG: 'it is far too large',
});

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
  finish(judgeStateSteps(bytes, highest, previous));

/** Like {@link judgeState}, in steps for a long file. @throws the same codes */
export function* judgeStateSteps(
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
    if (!isNumalignError(error, 'ERR_STATE_CORRUPT')) throw error;
    return damaged(error.message, { bytes });
  }
}

/**
 * Reads what an error says about a file. Returns undefined if the error has another cause than the
 * file.
 */
export function whyUnreadable(folder: NativeFolder, error: unknown): DamagedState | undefined {
  if (!isNumalignError(error, 'ERR_SYSCALL')) throw error;
  const name = error.errnoName ?? '';
  // In this user's own folder, EACCES means damage. In another user's folder it may be normal.
  if (name === 'EACCES')
    return folder.owner().user === process.geteuid!() ? damaged('it is unreadable', {}) : undefined;
  const why = noStateFile()[name];
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
