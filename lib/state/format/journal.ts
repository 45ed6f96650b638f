// The text of state.json: a head, the whole state at one generation, and a line for each commit
// since. docs/state-format.md describes it. Pure.
import type { NumalignError } from '../../base/errors.js';
import type { Fields } from '../../base/shapes.js';
import { type Checkpoint, checkpointOf, checkpointText } from './checkpoint.js';
import { Replay } from './replay.js';
import {
  corrupt,
  type FileFormat,
  headOf,
  isNewer,
  linesOf,
  membersOfVersion1,
  newerVersion,
  reading,
  type SealedLine,
  sealLine,
  sealText,
  versionOf,
} from './sealed-json.js';
import { GENERATIONS, generation, text, whole } from './shapes.js';

export const STATE_FORMAT: FileFormat = { name: 'numalign-state', version: 2, what: 'the state file' };

/** Where a journal stands. */
export interface JournalPlace {
  /** The offset behind the last good line. */
  readonly end: number;
  /** The checksum of that line. */
  readonly seal: string;
  /** How long the head and the whole state are. */
  readonly snapshot: number;
  /** Something is behind `end` that is no record: one that was not finished. */
  readonly hasTail: boolean;
}

/** What a journal says. */
export interface Journal {
  readonly checkpoint: Checkpoint;
  readonly place: JournalPlace;
}

/** The text of a whole file that says one checkpoint. */
export const encodeCheckpoint = (checkpoint: Checkpoint): string => journalText(checkpoint, null).text;

/** What a whole file says. @throws as {@link readJournal} */
export const decodeCheckpoint = (bytes: Buffer): Checkpoint => readJournal(bytes).checkpoint;

/**
 * The text of a journal that begins with a checkpoint, and the seal of its last line. `follows`: the
 * seal of its generation in the journal before.
 */
export function journalText(
  checkpoint: Checkpoint,
  follows: string | null,
): { readonly text: string; readonly seal: string } {
  const { line, seal } = sealText(checkpointText(checkpoint));
  const bytes = Buffer.byteLength(line);
  const head = { ...headOf(STATE_FORMAT), generation: checkpoint.generation, follows, bytes };
  return { text: `${sealLine(JSON.stringify(head))}${line}`, seal };
}

/** What the head of a journal says. */
export interface JournalHead {
  readonly generation: number;
  readonly follows: string | null;
  /** How long the head and the whole state are. */
  readonly snapshot: number;
}

/** The head of a journal of which at least the first line is there; undefined where it is no good. */
export function headIn(bytes: Buffer): JournalHead | undefined {
  if (versionOf(STATE_FORMAT, bytes) !== STATE_FORMAT.version) return undefined;
  const first = linesOf(bytes).next().value;
  try {
    return first?.members && decodeHead(first.members, first.end);
  } catch {
    return undefined;
  }
}

function decodeHead(given: Fields, length: number): JournalHead {
  return {
    generation: generation(given.generation),
    follows: given.follows === null ? null : text(given.follows, 'follows'),
    snapshot: length + whole(given.bytes, 'bytes'),
  };
}

/**
 * Reads a journal whole. Of one that a newer numalign wrote, what is known here, with a `refusal`.
 * @throws ERR_STATE_CORRUPT, ERR_STATE_VERSION where nothing of a newer file can be made out
 */
export function readJournal(bytes: Buffer): Journal {
  return reading(STATE_FORMAT, () => {
    const version = versionOf(STATE_FORMAT, bytes);
    if (version === undefined || version < 1) return corrupt('it does not begin like the state file');
    const newer = isNewer(STATE_FORMAT, bytes) ? newerVersion(STATE_FORMAT, version) : undefined;
    if (newer) return readNewer(bytes, newer);
    return version === 1 ? readVersion1(bytes) : readLines(bytes);
  });
}

function readNewer(bytes: Buffer, newer: NumalignError): Journal {
  try {
    const { checkpoint, place } = readLines(bytes, false);
    return { checkpoint: { ...checkpoint, refusal: newer }, place };
  } catch {
    throw newer;
  }
}

// The next commit writes a journal in its place.
function readVersion1(bytes: Buffer): Journal {
  const members = membersOfVersion1(bytes.toString('utf8'));
  if (!members) return corrupt('the checksum does not match its bytes');
  const end = bytes.length;
  return {
    checkpoint: checkpointOf(members),
    place: { end, seal: '', snapshot: end, hasTail: false },
  };
}

function readLines(bytes: Buffer, isSealed = true): Journal {
  const [first, second] = linesOf(bytes, isSealed);
  if (!first?.members) return corrupt('its first line is damaged');
  if (!second?.members) return corrupt('the whole state in it is damaged, or cut short');
  const { generation: begin, snapshot } = decodeHead(first.members, first.end);
  const replay = new Replay();
  replay.take(second.members);
  if (replay.generation !== begin || (isSealed && second.end !== snapshot))
    return corrupt('its first line does not fit the second');
  const place = { end: second.end, seal: second.seal, snapshot, hasTail: false };
  return readChanges(replay, place, linesOf(bytes.subarray(second.end), isSealed));
}

/** A journal with the lines that come behind it. @throws ERR_STATE_CORRUPT where one is no good */
export function withLines<Known extends Journal>(journal: Known, bytes: Buffer): Known {
  const { checkpoint, place } = journal;
  return { ...journal, ...readChanges(new Replay({ before: checkpoint }), place, linesOf(bytes)) };
}

function readChanges(replay: Replay, place: JournalPlace, lines: Iterable<SealedLine>): Journal {
  let { end, seal } = place;
  let hasTail = false;
  for (const line of lines) {
    hasTail = line.isOpen;
    if (hasTail) break;
    if (line.members?.line !== 'change') corrupt(`what follows generation ${replay.generation} is damaged`);
    replay.take(line.members);
    end = place.end + line.end;
    seal = line.seal;
  }
  return { checkpoint: replay.checkpoint(), place: { ...place, end, seal, hasTail } };
}

/**
 * The last generation that is known with all before it, from the good lines of some files in this
 * order; undefined where there is none. Of later lines it has the settings. REQUIRES: no file of a
 * newer version.
 */
export function remainsOf(files: readonly Buffer[]): Checkpoint | undefined {
  const replay = new Replay({ isLenient: true });
  try {
    for (const bytes of files) {
      for (const { members } of linesOf(bytes)) {
        if (members && members.format === undefined) replay.take(members);
      }
    }
    return replay.isEmpty ? undefined : replay.checkpoint();
  } catch {
    // Its checksums are right, and what it says is wrong.
    return undefined;
  }
}

/** The highest generation that is named in the file, whatever else is wrong with it; 0 where none is. */
export function highestIn(bytes: Buffer): number {
  const found = bytes.toString('latin1').matchAll(/"generation":(\d{1,15})[,}]/g);
  return Array.from(found, ([, digits]) => Number(digits))
    .filter((number) => number < GENERATIONS)
    .reduce((highest, number) => Math.max(highest, number), 0);
}
