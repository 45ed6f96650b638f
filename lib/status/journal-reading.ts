// What the file of a state says, line by line, also where it is damaged. Only looks.
import { join } from 'node:path';
import { checkOptions } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import { MACHINE_STATE_DIR, parseConfig } from '../input/config.js';
import {
  COPY_FILE,
  committedIn,
  highestOf,
  judgeState,
  STATE_FILE,
  whyUnreadable,
} from '../state/files/state-files.js';
import { explaining } from '../state/folder/folder-error.js';
import { type JournalLine, journalLines, journalVersion } from '../state/format/journal-lines.js';
import { openExisting } from '../state/read-only-store.js';

/** The file of a state as it stands. */
export interface StateJournal {
  /** Its path. */
  readonly file: string;
  /** Of its format; null where there is no such file, or it does not begin like one. */
  readonly version: number | null;
  readonly bytes: number;
  /** The generation that it leads to; null where it is damaged, or there is none. */
  readonly generation: number | null;
  /** The highest one that is known to have been committed; 0 where nothing says so. */
  readonly highest: number;
  /** That of the copy beside it; null where that is damaged, or there is none. */
  readonly copy: number | null;
  /** Why it is not trusted; null where it is good, or there is none. */
  readonly damage: string | null;
  readonly lines: readonly JournalLine[];
}

const NOTHING = {
  version: null,
  bytes: 0,
  generation: null,
  highest: 0,
  copy: null,
  damage: null,
  lines: [],
};

/** The options of {@link stateJournal}. */
export interface StateJournalOptions {
  /**
   * The state folder to read.
   * @default the machine's
   */
  stateDir?: string;
}

/**
 * Reads the file of a state line by line, as `numalign state show` prints it: also a damaged one,
 * one of a newer version, or one of another machine. It takes no lock and changes nothing. See
 * docs/state-format.md.
 * @throws ERR_INVALID_OPTION; ERR_STATE_FOLDER if the folder is closed to this process; ERR_SYSCALL
 */
export function stateJournal(options: StateJournalOptions = {}): StateJournal {
  const given = parseConfig(checkOptions(options, ['stateDir'], 'stateJournal'));
  const stateDir = given.stateDir ?? MACHINE_STATE_DIR;
  const file = join(stateDir, STATE_FILE);
  const folder = openExisting(stateDir);
  if (!folder) return { file, ...NOTHING };
  try {
    return explaining(stateDir, () => ({ file, ...readJournalIn(folder) }));
  } finally {
    folder.close();
  }
}

function readJournalIn(folder: NativeFolder): Omit<StateJournal, 'file'> {
  // Before the file is read: it is written after each commit.
  const highest = highestOf(folder);
  const copy = committedIn(folder, COPY_FILE) ?? null;
  let bytes: Buffer | undefined;
  try {
    bytes = folder.read(STATE_FILE);
  } catch (error) {
    const found = whyUnreadable(folder, error);
    if (found === undefined) throw error;
    return { ...NOTHING, highest, copy, damage: found.why };
  }
  if (!bytes) return { ...NOTHING, highest, copy };
  const { generation, damage } = judgementOf(bytes, highest);
  return {
    ...{ version: journalVersion(bytes), bytes: bytes.length, generation, highest, copy, damage },
    lines: journalLines(bytes),
  };
}

function judgementOf(bytes: Buffer, highest: number): Pick<StateJournal, 'generation' | 'damage'> {
  try {
    const found = judgeState(bytes, highest);
    return found.kind === 'good'
      ? { generation: found.checkpoint.generation, damage: null }
      : { generation: null, damage: found.why };
  } catch (error) {
    // Of a newer version of which nothing can be made out here.
    if (!(error instanceof NumalignError) || error.code !== 'ERR_STATE_VERSION') throw error;
    return { generation: null, damage: error.message };
  }
}
