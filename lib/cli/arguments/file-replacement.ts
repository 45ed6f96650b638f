// Several files that take the places of others, all or none.
import { constants, copyFile, type FileHandle, link, open, rename, rm } from 'node:fs/promises';

// As the kubelet has them.
const MODE = 0o600;

/** A new file, on the disk when this resolves. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', MODE);
  try {
    await file.writeFile(text);
    // Whatever the umask.
    await file.chmod(MODE);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** What was renamed in it is on the disk when this resolves. */
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
  /** Where the new text waits. */
  readonly beside: string;
  /** Another name of the file that there is, or a copy, until all are in place. */
  readonly before: string;
  readonly text: string;
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

async function keep({ path, before }: Replacement): Promise<void> {
  try {
    await link(path, before);
  } catch (error) {
    // Not every file system has links, and not every user may make them.
    if (!isMissing(error)) await copyFile(path, before, constants.COPYFILE_EXCL);
  }
}

export async function remove(paths: readonly string[]): Promise<void> {
  await Promise.all(paths.map((path) => rm(path, { force: true }).catch(() => {})));
}

// Where one cannot be replaced, those that were are put back. What cannot be put back stays beside,
// and the error names it.
export async function replaceAll(files: readonly Replacement[]): Promise<void> {
  const replaced: Replacement[] = [];
  const left: string[] = [];
  try {
    for (const file of files) {
      await keep(file);
      await rename(file.beside, file.path);
      replaced.push(file);
    }
  } catch (error) {
    for (const { path, before } of replaced) {
      await rename(before, path).catch((failure) => {
        if (isMissing(failure)) return rm(path, { force: true });
        left.push(before);
      });
    }
    if (left.length > 0) (error as Error).message += `; the file that was there is ${left.join(', ')} now`;
    throw error;
  } finally {
    await remove(files.map(({ before }) => before).filter((before) => !left.includes(before)));
  }
}
