// MachineFiles: the files of `numalign setup` below a root: what to change, and the changes.
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { NumalignError } from 'numalign';
import { errorText, kernelFacts } from 'numalign/tools';
import { keptText, uneditedBody } from '../../systemd/kept-text.js';
import type { SetupFile } from '../../systemd/setup-files.js';

/**
 * What setup does with a file. `kept`: a user has edited it, so setup leaves it. `needed`: the state
 * is in use.
 */
export type FileAction = 'write' | 'replace' | 'unchanged' | 'remove' | 'kept' | 'needed' | 'absent';

export interface PlannedFile {
  /** Includes the root. */
  readonly path: string;
  readonly action: FileAction;
  /** The new text; undefined to remove the file. */
  readonly text: string | undefined;
}

const MODE = 0o644;

export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw fileError('read', path, error);
  }
}

export function planFile({ path, body }: SetupFile): PlannedFile {
  const [now, text] = [textOf(path), keptText(body)];
  if (now === undefined) return { path, text, action: 'write' };
  if (now === text) return { path, text, action: 'unchanged' };
  return { path, text, action: uneditedBody(now) === undefined ? 'kept' : 'replace' };
}

export function planRemoval(path: string, isNeeded = false): PlannedFile {
  const now = textOf(path);
  if (now === undefined) return { path, text: undefined, action: 'absent' };
  const action = uneditedBody(now) === undefined ? 'kept' : isNeeded ? 'needed' : 'remove';
  return { path, text: undefined, action };
}

const isChange = ({ action }: PlannedFile) => ['write', 'replace', 'remove'].includes(action);

/** The folder itself, or its nearest ancestor that exists. */
function existingFolder(path: string): string {
  return existsSync(path) ? path : existingFolder(dirname(path));
}

/** Checks that all files can be changed. @throws ERR_SYSCALL */
export function checkChanges(files: readonly PlannedFile[]): void {
  for (const { path } of files.filter(isChange)) {
    try {
      // The dot refuses anything but a folder.
      accessSync(`${existingFolder(dirname(path))}/.`, constants.W_OK | constants.X_OK);
    } catch (error) {
      throw fileError('change', path, error);
    }
  }
}

/** @throws ERR_SYSCALL */
export function change(files: readonly PlannedFile[]): void {
  for (const { path, text } of files.filter(isChange)) {
    try {
      if (text === undefined) rmSync(path);
      else put(path, text);
    } catch (error) {
      throw fileError('change', path, error);
    }
  }
}

// Writes the file whole or not at all. The mode does not depend on the umask.
function put(path: string, text: string): void {
  const newPath = `${path}.new`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  rmSync(newPath, { force: true });
  try {
    writeFileSync(newPath, text, { flag: 'wx' });
    chmodSync(newPath, MODE);
    renameSync(newPath, path);
  } finally {
    rmSync(newPath, { force: true });
  }
}

function fileError(what: string, path: string, error: unknown): NumalignError {
  const { code } = error as NodeJS.ErrnoException;
  const advice = code === 'EACCES' || code === 'EPERM' ? ': run it as root, or give --root' : '';
  return new NumalignError('ERR_SYSCALL', `cannot ${what} ${path} (${errorText(error as Error)})${advice}`, {
    ...kernelFacts(error as NodeJS.ErrnoException),
    value: path,
    valid: 'a folder that this user can write to',
    cause: error,
  });
}
