// The text of files of the kernel and of other programs.
import { readFileSync } from 'node:fs';

/** Undefined if the file is missing, or closed to this process. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
