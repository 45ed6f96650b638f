// Folders inside the state folder.
import type { NativeFolder } from '../../base/native-files.js';

/** Opens the folder, or makes it. */
export const partOf = (folder: NativeFolder, name: string) =>
  folder.child(name, true, folder.owner().mode, -1);

/** Like {@link partOf}; only the owner of a new file can write it. */
export const ownFilesIn = (folder: NativeFolder, name: string) =>
  using(partOf(folder, name), (part) => part.withOwnFiles());

/** Closes the folder after `action`. */
export function using<T>(folder: NativeFolder, action: (folder: NativeFolder) => T): T {
  try {
    return action(folder);
  } finally {
    folder.close();
  }
}
