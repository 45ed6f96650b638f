// Replaces several files, all or none.
import { constants } from 'node:fs';
import { copyFile, type FileHandle, link, open, rename, rm } from 'node:fs/promises';

// The mode of the kubelet's files.
const MODE = 0o600;

/** Writes a new file. It is on the disk when this resolves. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', MODE);
  try {
    await file.writeFile(text);
    // Independent of the umask.
    await file.chmod(MODE);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Renames in the folder are on the disk when this resolves. */
export async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, 'r');
    await handle.sync();
  } finally {
    await handle?.close();
  }
}

export interface Replacement {
  readonly path: string;
  /** The path of the new text until it replaces the file. */
  readonly newPath: string;
  /** Another name or a copy of the previous file until all files are in place. */
  readonly backup: string;
  readonly text: string;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

async function keep({ path, backup }: Replacement): Promise<void> {
  try {
    await link(path, backup);
  } catch (error) {
    // Some file systems have no links, and some users may not make them.
    if (!isMissing(error)) await copyFile(path, backup, constants.COPYFILE_EXCL);
  }
}

export async function remove(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => rm(path, { force: true }).catch(() => {})));
}

/**
 * Replaces all files. If one fails, it restores those before. A file that cannot be restored keeps
 * its backup, and the error names it.
 */
export async function replaceAll(files: readonly Replacement[]): Promise<void> {
  const finished: Replacement[] = [];
  const backups: string[] = [];
  try {
    for (const file of files) {
      await keep(file);
      await rename(file.newPath, file.path);
      finished.push(file);
    }
  } catch (error) {
    for (const { path, backup } of finished) {
      await rename(backup, path).catch((failure) => {
        if (isMissing(failure)) return rm(path, { force: true });
        backups.push(backup);
      });
    }
    if (backups.length > 0) (error as Error).message += `; the previous file is now ${backups.join(', ')}`;
    throw error;
  } finally {
    await remove(files.map(({ backup }) => backup).filter((backup) => !backups.includes(backup)));
  }
}
