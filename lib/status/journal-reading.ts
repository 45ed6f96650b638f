// JournalReading: what a state's file says, line by line, even if it is damaged. Only looks.
import { join } from 'node:path';
import { checkOptions } from '../base/check-options.js';
import { isNumalignError } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import { parseConfig } from '../input/config.js';
import {
  COPY_FILE,
  committedIn,
  highestOf,
  judgeState,
  STATE_FILE,
  whyUnreadable,
} from '../state/files/state-files.js';
import { defaultStateDir } from '../state/folder/chosen-folder.js';
import { withExisting } from '../state/folder/existing.js';
import { explaining } from '../state/folder/folder-error.js';
import { type JournalLine, journalLines, journalVersion } from '../state/format/journal-lines.js';

/** A state's file as it is. */
export interface StateJournal {
  /** The absolute path of the file. */
  readonly file: string;
  /** The version of its format; null if there is no file, or it does not begin like a state. */
  readonly version: number | null;
  /** Size of the file in bytes; 0 if there is none. */
  readonly bytes: number;
  /** The generation after its last line; null if it is damaged or missing. */
  readonly generation: number | null;
  /** The highest generation that is known to be committed; 0 if unknown. */
  readonly highest: number;
  /** The generation of the copy beside it; null if the copy is damaged or missing. */
  readonly copy: number | null;
  /** Why the file is not trusted; null if it is good or missing. */
  readonly damage: string | null;
  /** All lines in order, good or damaged; empty if the file cannot be read. */
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
   * @default the variable `NUMALIGN_STATE_DIR`, else the machine's
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
  const config = parseConfig(checkOptions(options, ['stateDir'], 'stateJournal'));
  const stateDir = config.stateDir ?? defaultStateDir();
  const file = join(stateDir, STATE_FILE);
  return withExisting(stateDir, (folder) =>
    explaining(stateDir, () => ({ file, ...(folder ? readJournalIn(folder) : NOTHING) })),
  );
}

function readJournalIn(folder: NativeFolder): Omit<StateJournal, 'file'> {
  // Read before the state's file: this file is written after each commit.
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
  const [version, lines] = [journalVersion(bytes), journalLines(bytes)];
  return { version, bytes: bytes.length, generation, highest, copy, damage, lines };
}

function judgementOf(bytes: Buffer, highest: number): Pick<StateJournal, 'generation' | 'damage'> {
  try {
    const found = judgeState(bytes, highest);
    return found.kind === 'good'
      ? { generation: found.checkpoint.generation, damage: null }
      : { generation: null, damage: found.why };
  } catch (error) {
    // The file has a newer version that this one cannot read at all.
    if (!isNumalignError(error, 'ERR_STATE_VERSION')) throw error;
    return { generation: null, damage: error.message };
  }
}
