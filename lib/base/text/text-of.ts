// Files of the kernel and of other programs, for who only looks.
import { readFileSync } from 'node:fs';

/** Undefined where it is not there, or closed to this process. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
