// Checks whether a command can be executed, as far as its file shows.
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';

// execvp(3), of glibc.
const USUAL_PATH = '/bin:/usr/bin';

/** The kernel's refusal of a file, such as `ENOENT`; undefined where none is to be expected. */
export function refusalOfFile(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? undefined : 'EACCES';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/**
 * Why a command, a path or a name in PATH, cannot be executed; undefined where nothing tells. A
 * program that is there may be refused all the same.
 */
export function refusalOfCommand(command: string): string | undefined {
  if (command.includes('/')) return refusalOfFile(command);
  const { PATH = USUAL_PATH } = process.env;
  const refusals = PATH.split(':').map((folder) => refusalOfFile(join(folder || '.', command)));
  if (refusals.includes(undefined)) return undefined;
  return refusals.includes('EACCES') ? 'EACCES' : 'ENOENT';
}
