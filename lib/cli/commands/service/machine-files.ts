// MachineFiles: the files of `numalign setup` below a root, as they are and as they shall be.
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
import { kernelFacts, NumalignError } from '../../../base/errors.js';
import { keptText, unedited } from '../../systemd/kept-text.js';
import type { SetupFile } from '../../systemd/setup-files.js';

/** What becomes of a file. `kept`: a user has edited it, so numalign leaves it. */
export type FileAction = 'write' | 'replace' | 'unchanged' | 'remove' | 'kept' | 'absent';

export interface PlannedFile {
  /** With the root. */
  readonly path: string;
  readonly action: FileAction;
  /** As it is to be; undefined where it is to be removed. */
  readonly text: string | undefined;
}

const MODE = 0o644;

export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw refused('read', path, error);
  }
}

export function plannedFile({ path, body }: SetupFile): PlannedFile {
  const [now, text] = [textOf(path), keptText(body)];
  if (now === undefined) return { path, text, action: 'write' };
  if (now === text) return { path, text, action: 'unchanged' };
  return { path, text, action: unedited(now) === undefined ? 'kept' : 'replace' };
}

export function plannedRemoval(path: string): PlannedFile {
  const now = textOf(path);
  if (now === undefined) return { path, text: undefined, action: 'absent' };
  return { path, text: undefined, action: unedited(now) === undefined ? 'kept' : 'remove' };
}

const isChange = ({ action }: PlannedFile) => ['write', 'replace', 'remove'].includes(action);

/** The folder itself, or the innermost one above it that there is. */
function folderThere(path: string): string {
  return existsSync(path) ? path : folderThere(dirname(path));
}

/**
 * All of them can be changed.
 * @throws ERR_SYSCALL
 */
export function checkChanges(files: readonly PlannedFile[]): void {
  for (const { path } of files.filter(isChange)) {
    try {
      // With the dot only a folder will do.
      accessSync(`${folderThere(dirname(path))}/.`, constants.W_OK | constants.X_OK);
    } catch (error) {
      throw refused('change', path, error);
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
      throw refused('change', path, error);
    }
  }
}

// Whole or not at all, whatever the umask.
function put(path: string, text: string): void {
  const beside = `${path}.new`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  rmSync(beside, { force: true });
  try {
    writeFileSync(beside, text, { flag: 'wx' });
    chmodSync(beside, MODE);
    renameSync(beside, path);
  } finally {
    rmSync(beside, { force: true });
  }
}

function refused(what: string, path: string, error: unknown): NumalignError {
  const { message, code } = error as NodeJS.ErrnoException;
  const advice = code === 'EACCES' || code === 'EPERM' ? ': run it as root, or give --root' : '';
  return new NumalignError('ERR_SYSCALL', `cannot ${what} ${path} (${message})${advice}`, {
    ...kernelFacts(error as NodeJS.ErrnoException),
    value: path,
    valid: 'a folder that this user can write to',
    cause: error,
  });
}
