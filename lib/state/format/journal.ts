// The text of state.json: a head, the whole state at one generation, and a line for each later
// commit. docs/state-format.md describes it. Pure.
import { isNumalignError, NumalignError, unlessThrown } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { Fields } from '../../base/shapes.js';
import { finish, type Steps } from '../../base/steps.js';
import { type Checkpoint, checkpointParts, checkpointSteps, versionFor } from './checkpoint.js';
import { decodePod } from './pod-record.js';
import { Replay } from './replay.js';
import {
  checkVersion,
  corrupt,
  damageIn,
  type FileFormat,
  headOf,
  linesOf,
  readVersion1,
  type SealedLine,
  type SealedText,
  sealLine,
  sealParts,
  versionOf,
} from './sealed-json.js';
import { GENERATIONS, generation, text, whole } from './shapes.js';

/** See {@link versionFor}. */
export const STATE_FORMAT: FileFormat = {
  name: 'numalign-state',
  version: 4,
  older: [2, 3],
  what: 'the state file',
};

/** A position in a journal. */
export interface JournalPlace {
  /** The offset behind the last good line. */
  readonly end: number;
  /** The checksum of the last good line. */
  readonly seal: string;
  /** The length of the head and the whole state, in bytes. */
  readonly snapshot: number;
  /** True if an unfinished line follows `end`. */
  readonly hasTail: boolean;
}

/** A decoded journal. */
export interface Journal {
  readonly checkpoint: Checkpoint;
  readonly place: JournalPlace;
}

/** The text of a whole file with one checkpoint. */
export const encodeCheckpoint = (checkpoint: Checkpoint): string =>
  encodeJournal(checkpoint, null).bytes.toString();

/** Decodes a whole file. @throws as {@link readJournal} */
export const decodeCheckpoint = (bytes: Buffer): Checkpoint => readJournal(bytes).checkpoint;

/**
 * A journal that begins with a checkpoint. `follows`: the seal of its generation in the journal
 * before. `change`: the line that comes next.
 */
export function encodeJournal(
  checkpoint: Checkpoint,
  follows: string | null,
  change?: SealedText,
): { readonly bytes: Buffer; readonly place: JournalPlace } {
  const { generation, assignments } = checkpoint;
  const version = headOf(STATE_FORMAT, versionFor(assignments));
  const head = (bytes: number) => sealLine(JSON.stringify({ ...version, generation, follows, bytes }));
  const { bytes, end, seal } = sealParts(checkpointParts(checkpoint), head, change?.line ?? '');
  const place = { end: bytes.length, seal: change?.seal ?? seal, snapshot: end, hasTail: false };
  return { bytes, place };
}

/** Decodes the head of a journal that has at least its first line; undefined if it is damaged. */
export function headIn(bytes: Buffer): ReturnType<typeof decodeHead> | undefined {
  const version = versionOf(STATE_FORMAT, bytes);
  if (version === undefined || ![STATE_FORMAT.version, ...STATE_FORMAT.older].includes(version))
    return undefined;
  const first = linesOf(bytes).next().value;
  return unlessThrown(() => first?.members && decodeHead(first.members, first.end));
}

// `snapshot`: the length of the head and the whole state, in bytes.
function decodeHead(fields: Fields, length: number) {
  return {
    generation: generation(fields.generation),
    follows: fields.follows === null ? null : text(fields.follows, 'follows'),
    snapshot: length + whole(fields.bytes, 'bytes'),
  };
}

/**
 * Reads a whole journal. For a journal of a newer numalign, returns what this version knows, with a
 * `refusal`.
 * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION if nothing of a newer file can be read
 */
export const readJournal = (bytes: Buffer): Journal => finish(journalSteps(bytes));

/** Like {@link readJournal}, in steps for a long file. @throws the same codes */
export function* journalSteps(bytes: Buffer): Steps<Journal> {
  try {
    const { version, newer } = checkVersion(STATE_FORMAT, bytes);
    if (newer) return yield* readNewer(bytes, newer);
    return yield* version === 1 ? readWhole(bytes) : readLines(bytes);
  } catch (error) {
    throw damageIn(STATE_FORMAT, error);
  }
}

function* readNewer(bytes: Buffer, newer: NumalignError): Steps<Journal> {
  try {
    const { checkpoint, place } = yield* readLines(bytes, false);
    return { checkpoint: { ...checkpoint, refusal: newer }, place };
  } catch {
    throw newer;
  }
}

// A file of version 1. The next commit writes a new journal over it.
function* readWhole(bytes: Buffer): Steps<Journal> {
  const end = bytes.length;
  const checkpoint = yield* checkpointSteps(readVersion1(bytes), undefined, decodePod);
  return { checkpoint, place: { end, seal: '', snapshot: end, hasTail: false } };
}

function* readLines(bytes: Buffer, isSealed = true): Steps<Journal> {
  const { value: first } = linesOf(bytes, isSealed).next();
  yield;
  if (!first?.members) return corrupt('its first line is damaged');
  const decoded = () => {
    const [, second] = linesOf(bytes, isSealed);
    if (!second?.members) return corrupt('the whole state in it is damaged, or cut short');
    const replay = new Replay();
    replay.take(second.members);
    return { replay, end: second.end, seal: second.seal };
  };
  const { replay, end, seal } = (isSealed && (yield* mergedState(bytes, first.end))) || decoded();
  const head = decodeHead(first.members, first.end);
  if (replay.generation !== head.generation || (isSealed && end !== head.snapshot))
    return corrupt('its first line does not fit the second');
  const place = { end, seal, snapshot: head.snapshot, hasTail: false };
  const rest = bytes.subarray(end);
  return yield* isSealed
    ? readChanges(() => decoded().replay, place, rest, replay)
    : readOneByOne(replay, place, linesOf(rest, false));
}

// The whole state in the line at `begin`, if the addon can read it: see readChanges.
function* mergedState(bytes: Buffer, begin: number) {
  const end = bytes.indexOf('\n', begin) + 1;
  const merged = native.mergeLines(bytes.subarray(begin, end));
  if (!merged?.[0]) return undefined;
  const [change, words, , seal] = merged;
  const replay = new Replay();
  try {
    yield* replay.takeMerged(change, words);
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    return undefined;
  }
  return { replay, end, seal };
}

/** Adds the lines in `bytes` to a journal. @throws ERR_STATE_CORRUPT if a line is damaged */
export function withLines<Known extends Journal>(journal: Known, bytes: Buffer): Known {
  const { checkpoint, place } = journal;
  return { ...journal, ...finish(readChanges(() => new Replay({ before: checkpoint }), place, bytes)) };
}

// Adds the lines in `bytes` to what `begin` has. The addon merges those that are as numalign writes
// them. For all others, or if something is wrong with them, they are read one by one.
function* readChanges(
  begin: () => Replay,
  place: JournalPlace,
  bytes: Buffer,
  replay = begin(),
): Steps<Journal> {
  try {
    const journal = yield* readMerged(replay, place, bytes);
    if (journal) return journal;
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
  }
  return yield* readOneByOne(begin(), place, linesOf(bytes));
}

// Takes the addon less than a millisecond.
const MERGED_AT_ONCE = 1 << 18;

function* readMerged(replay: Replay, place: JournalPlace, bytes: Buffer): Steps<Journal | undefined> {
  let { end, seal } = place;
  let hasTail = false;
  for (let at = 0; at < bytes.length && !hasTail; at = end - place.end) {
    const cut = bytes.length - at > MERGED_AT_ONCE ? bytes.lastIndexOf('\n', at + MERGED_AT_ONCE) + 1 : 0;
    const part = bytes.subarray(at, cut > at ? cut : bytes.length);
    const merged = native.mergeLines(part, replay.generation);
    if (!merged) return undefined;
    const [change, words, length, lastSeal, isTorn] = merged;
    if (isTorn && at + part.length < bytes.length) return undefined;
    if (change !== '') yield* replay.takeMerged(change, words);
    end += length;
    seal = lastSeal || seal;
    hasTail = isTorn;
    yield;
  }
  return { checkpoint: yield* replay.checkpoint(), place: { ...place, end, seal, hasTail } };
}

function* readOneByOne(replay: Replay, place: JournalPlace, lines: Iterable<SealedLine>): Steps<Journal> {
  let { end, seal } = place;
  let hasTail = false;
  for (const line of lines) {
    hasTail = line.isOpen;
    if (hasTail) break;
    if (line.members?.line !== 'change') corrupt(`what follows generation ${replay.generation} is damaged`);
    replay.take(line.members);
    end = place.end + line.end;
    seal = line.seal;
    yield;
  }
  return { checkpoint: yield* replay.checkpoint(), place: { ...place, end, seal, hasTail } };
}

/**
 * The last generation that the good lines of these files, in this order, fully describe; undefined
 * if there is none. Takes the settings of later lines too. REQUIRES: no file of a newer version.
 * @throws ERR_STATE_VERSION if they have a value that only a newer version knows
 */
export function remainsOf(files: readonly Buffer[]): Checkpoint | undefined {
  const replay = new Replay({ isLenient: true });
  try {
    for (const bytes of files) {
      for (const { members } of linesOf(bytes)) {
        if (members && members.format === undefined) replay.take(members);
      }
    }
    return replay.isEmpty ? undefined : finish(replay.checkpoint());
  } catch (error) {
    if (isNumalignError(error, 'ERR_STATE_VERSION')) throw error;
    // The checksums are right, but the contents are wrong.
    return undefined;
  }
}

/** The highest generation that the file names, even if the file is damaged; 0 if it names none. */
export function highestIn(bytes: Buffer): number {
  const found = bytes.toString('latin1').matchAll(/"generation":(\d{1,15})[,}]/g);
  return Array.from(found, ([, digits]) => Number(digits))
    .filter((number) => number < GENERATIONS)
    .reduce((highest, number) => Math.max(highest, number), 0);
}
