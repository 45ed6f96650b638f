// Reads the kubelet's state files in a folder, and replaces both or neither.
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NumalignError } from 'numalign';
import { CPU_MANAGER_STATE, type KubeletFiles, MEMORY_MANAGER_STATE } from 'numalign/kubelet';
import { errorText, kernelFacts } from 'numalign/tools';
import { type Replacement, remove, replaceAll, syncFolder, writeDurably } from './file-replacement.js';

function fileError(path: string, error: unknown): NumalignError {
  if ((error as NodeJS.ErrnoException).errno === undefined) throw error;
  return new NumalignError('ERR_SYSCALL', errorText(error as Error), {
    value: path,
    ...kernelFacts(error as Error),
    cause: error,
  });
}

async function readText(folder: string, name: string): Promise<string | null> {
  const path = join(folder, name);
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw fileError(path, error);
  });
  if (bytes === null || isUtf8(bytes)) return bytes?.toString('utf8') ?? null;
  throw new NumalignError('ERR_KUBELET_STATE', `${path} cannot be used: it is not UTF-8 text`, {
    file: name,
    valid: 'UTF-8',
  });
}

/**
 * Reads the files in a folder.
 * @throws ERR_KUBELET_STATE if the folder has neither, or one is not text; ERR_SYSCALL
 */
export async function readKubeletFolder(folder: string): Promise<KubeletFiles> {
  const cpuManagerState = await readText(folder, CPU_MANAGER_STATE);
  const memoryManagerState = await readText(folder, MEMORY_MANAGER_STATE);
  if (cpuManagerState !== null || memoryManagerState !== null) return { cpuManagerState, memoryManagerState };
  throw new NumalignError(
    'ERR_KUBELET_STATE',
    `${folder} has neither ${CPU_MANAGER_STATE} nor ${MEMORY_MANAGER_STATE}`,
    { value: folder, valid: "the kubelet's root folder, such as /var/lib/kubelet" },
  );
}

/**
 * Puts both files into a folder, and makes the folder if its parent exists. It writes and syncs
 * both beside their places first, so that a crash leaves each old or new as a whole. Returns their
 * paths.
 * @throws ERR_SYSCALL; the previous files are then in place, except one that the message names
 */
export async function writeKubeletFolder(
  folder: string,
  files: Record<keyof KubeletFiles, string>,
): Promise<string[]> {
  const mark = randomUUID();
  const texts = [
    [CPU_MANAGER_STATE, files.cpuManagerState],
    [MEMORY_MANAGER_STATE, files.memoryManagerState],
  ] as const;
  const all = texts.map(([name, text]): Replacement => {
    const prefix = join(folder, `.${name}-${mark}`);
    return { path: join(folder, name), newPath: `${prefix}.new`, backup: `${prefix}.old`, text };
  });
  try {
    await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    for (const { newPath, text } of all) await writeDurably(newPath, text);
    await replaceAll(all);
    await syncFolder(folder);
  } catch (error) {
    throw fileError(folder, error);
  } finally {
    await remove(all.map(({ newPath }) => newPath));
  }
  return all.map(({ path }) => path);
}
