// The text of files of the kernel and of other programs.
import { readFileSync } from 'node:fs';
import { throwIfExhausted } from '../errors.js';

/** Undefined if the file is missing, or closed to this process. @throws ERR_SYSCALL */
export function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throwIfExhausted(error);
    return undefined;
  }
}
