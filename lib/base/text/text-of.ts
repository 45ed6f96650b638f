// The text of files of the kernel and of other programs.
import { readFileSync, readlinkSync } from 'node:fs';

/** Undefined if the file is missing, or closed to this process. */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** What a link says, such as those in /proc/PID/ns. Empty if the same holds. */
export function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
