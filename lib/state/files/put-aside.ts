// Moves things aside in a state folder: damaged files and states of earlier boots.
import type { NativeFolder } from '../../base/native-files.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { encodeCheckpoint } from '../format/journal.js';
import { partOf, using } from './parts.js';
import type { FoundState } from './state-files.js';

const QUARANTINE = 'quarantine';
export const ARCHIVE_FOLDER = 'archive';

/** Moves a damaged file aside. Returns its new name, if it was damaged. */
export const quarantine = (folder: NativeFolder, name: string, { kind }: FoundState): string[] =>
  kind === 'damaged' ? [putAside(folder, name)] : [];

/** Moves what has the name in `from` to the quarantine of the state folder. Returns its new name. */
export function putAside(folder: NativeFolder, name: string, from = folder): string {
  return using(partOf(folder, QUARANTINE), (aside) => {
    const time = new Date().toISOString().replace(/[-:]/g, '');
    let newName = `${time}-${name}`;
    for (let n = 2; aside.version(newName) !== undefined; n++) newName = `${time}.${n}-${name}`;
    from.move(name, aside, newName);
    return newName;
  });
}

/** Saves a copy of a checkpoint. Returns its name below the folder. REQUIRES: the lock. */
export async function archive(folder: NativeFolder, checkpoint: Checkpoint): Promise<string> {
  const name = `${checkpoint.bootId.replace(/[^0-9a-z-]/g, '')}-${checkpoint.generation}.json`;
  await using(partOf(folder, ARCHIVE_FOLDER), (archive) =>
    archive.replaceDurably(name, '', Buffer.from(encodeCheckpoint(checkpoint)), 0),
  );
  return `${ARCHIVE_FOLDER}/${name}`;
}
