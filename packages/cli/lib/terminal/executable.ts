// Checks by its file whether a command can be executed.
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';

// The default of execvp(3) in glibc.
const USUAL_PATH = '/bin:/usr/bin';

/** The refusal to expect from the kernel, such as `ENOENT`; undefined if none. */
export function refusalOfFile(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile() ? undefined : 'EACCES';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code;
  }
}

/**
 * The refusal to expect for a command, a path or a name in PATH; undefined if none. The kernel can
 * still refuse the program for another reason.
 */
export function refusalOfCommand(command: string): string | undefined {
  if (command.includes('/')) return refusalOfFile(command);
  const { PATH = USUAL_PATH } = process.env;
  const refusals = PATH.split(':').map((folder) => refusalOfFile(join(folder || '.', command)));
  if (refusals.includes(undefined)) return undefined;
  return refusals.includes('EACCES') ? 'EACCES' : 'ENOENT';
}
