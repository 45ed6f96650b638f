// KeptFiles: what a state folder keeps beside the state: states of earlier boots, and files that
// were quarantined as damaged. Only looks.
import { type LapsedGrant, lapsedGrants } from '../admission/warnings.js';
import { NumalignError } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import { ARCHIVE_FOLDER } from '../state/files/put-aside.js';
import { withChild, withExisting } from '../state/folder/existing.js';
import { decodeCheckpoint } from '../state/format/journal.js';

const QUARANTINE_FOLDER = 'quarantine';

/** What a folder keeps beside its state. */
export interface KeptFiles {
  /** States of earlier boots, the latest first. */
  readonly archives: readonly ArchivedState[];
  /** Quarantined files, below the state folder; their names begin with the time. */
  readonly quarantine: readonly string[];
}

/** A state of an earlier boot. */
export interface ArchivedState {
  /** The path below the state folder. */
  readonly file: string;
  /** Null if the file cannot be read as a state. */
  readonly generation: number | null;
  /** When its last generation was written, in ISO 8601; null as `generation`. */
  readonly writtenAt: string | null;
  /** The persistent grants that were in it. */
  readonly lapsed: readonly LapsedGrant[];
}

function readArchive(folder: NativeFolder, name: string): ArchivedState {
  const file = `${ARCHIVE_FOLDER}/${name}`;
  try {
    const { generation, writtenAt, assignments } = decodeCheckpoint(folder.read(name) ?? Buffer.alloc(0));
    return { file, generation, writtenAt, lapsed: lapsedGrants(assignments) };
  } catch (error) {
    // An unreadable archive is listed without its content, which nothing depends on.
    if (!(error instanceof NumalignError)) throw error;
    return { file, generation: null, writtenAt: null, lapsed: [] };
  }
}

function readArchives(archive: NativeFolder): readonly ArchivedState[] {
  return archive
    .list()
    .filter((name) => name.endsWith('.json'))
    .map((name) => readArchive(archive, name))
    .sort((a, b) => (b.writtenAt ?? '').localeCompare(a.writtenAt ?? '') || a.file.localeCompare(b.file));
}

/** What a folder keeps; empty if there is none. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
export function readKeptFiles(stateDir: string): KeptFiles {
  return withExisting(stateDir, (folder) => {
    if (!folder) return { archives: [], quarantine: [] };
    const archives = withChild(folder, ARCHIVE_FOLDER, (archive) => (archive ? readArchives(archive) : []));
    const names = withChild(folder, QUARANTINE_FOLDER, (quarantine) => quarantine?.list() ?? []);
    return { archives, quarantine: names.sort().map((name) => `${QUARANTINE_FOLDER}/${name}`) };
  });
}
