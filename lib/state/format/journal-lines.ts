// The lines of state.json as they are, good or damaged, for people to read. Pure.
import type { Fields } from '../../base/shapes.js';
import { STATE_FORMAT } from './journal.js';
import { isNewer, linesOf, membersOfVersion1, versionOf } from './sealed-json.js';

/** A line of the state file. */
export interface JournalLine {
  /** Offset in bytes from the beginning of the file. */
  readonly offset: number;
  /** Length in bytes, with the newline. */
  readonly bytes: number;
  /**
   * `damaged`: the checksum does not match. `unfinished`: the last line has no valid checksum,
   * because a process ended while it wrote; the next commit cuts it off. `other`: a kind that this
   * version does not know.
   */
  readonly kind: 'head' | 'state' | 'change' | 'damaged' | 'unfinished' | 'other';
  /** The generation that the line commits; null if it has none or cannot be read. */
  readonly generation: number | null;
  /** When it was written, in ISO 8601; null as `generation`. */
  readonly writtenAt: string | null;
  /** The record as docs/state-format.md describes it; null if it cannot be read. */
  readonly record: Record<string, unknown> | null;
}

const KINDS = ['state', 'change'] as const;

function kindOf({ format, line }: Fields): JournalLine['kind'] {
  if (format !== undefined && line === undefined) return 'head';
  return KINDS.find((kind) => kind === line) ?? 'other';
}

function lineOf(
  offset: number,
  end: number,
  record: Fields | undefined,
  kind: JournalLine['kind'],
): JournalLine {
  const { generation, writtenAt } = record ?? {};
  return {
    offset,
    bytes: end - offset,
    kind,
    generation: typeof generation === 'number' ? generation : null,
    writtenAt: typeof writtenAt === 'string' ? writtenAt : null,
    record: record ?? null,
  };
}

/** The version that the file claims; null if it does not begin like a state. */
export const journalVersion = (bytes: Buffer) => versionOf(STATE_FORMAT, bytes) ?? null;

/**
 * All lines of the file in order. Does not check seals of a newer version, which may seal in
 * another way.
 */
export function journalLines(bytes: Buffer): JournalLine[] {
  const whole = versionOf(STATE_FORMAT, bytes) === 1 ? membersOfVersion1(bytes.toString('utf8')) : undefined;
  if (whole) return [lineOf(0, bytes.length, whole, 'state')];
  let offset = 0;
  return Array.from(linesOf(bytes, !isNewer(STATE_FORMAT, bytes)), ({ members, end, isOpen }) => {
    const kind = members ? kindOf(members) : isOpen ? 'unfinished' : 'damaged';
    const line = lineOf(offset, end, members, kind);
    offset = end;
    return line;
  });
}
