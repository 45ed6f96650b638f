// Folders in the state folder.
import type { NativeFolder } from '../../base/native-files.js';

/** Made where there is none. */
export const partOf = (folder: NativeFolder, name: string) =>
  folder.child(name, true, folder.owner().mode, -1);

/** The same; new files in it are writable by nobody but their owner. */
export const ownFilesIn = (folder: NativeFolder, name: string) =>
  using(partOf(folder, name), (part) => part.withOwnFiles());

/** Closes the folder once `action` has answered. */
export function using<T>(folder: NativeFolder, action: (folder: NativeFolder) => T): T {
  try {
    return action(folder);
  } finally {
    folder.close();
  }
}
