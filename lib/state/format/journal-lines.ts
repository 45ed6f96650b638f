// The lines of state.json as they stand, whatever is wrong with them: for people. Pure.
import type { Fields } from '../../base/shapes.js';
import { STATE_FORMAT } from './journal.js';
import { isNewer, linesOf, membersOfVersion1, versionOf } from './sealed-json.js';

/** A line of the state's file. */
export interface JournalLine {
  /** In bytes, from the beginning of the file. */
  readonly offset: number;
  /** How many, with its newline. */
  readonly bytes: number;
  /**
   * `damaged`: its checksum is not that of its bytes. `unfinished`: so it is, and nothing follows;
   * a process has ended while it was written, and the next commit cuts it off. `other`: of a kind
   * that is not known here.
   */
  readonly kind: 'head' | 'state' | 'change' | 'damaged' | 'unfinished' | 'other';
  readonly generation: number | null;
  readonly writtenAt: string | null;
  /** What it says, as docs/state-format.md describes it; null where nothing can be made of it. */
  readonly record: Fields | null;
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

/** The version that the file says it has; null where it does not begin like a state. */
export const journalVersion = (bytes: Buffer) => versionOf(STATE_FORMAT, bytes) ?? null;

/** All lines of the file, in their order. A newer version may be sealed in another way. */
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
