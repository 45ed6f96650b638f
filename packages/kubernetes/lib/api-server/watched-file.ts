// WatchedFile: a small file that other programs replace, such as a rotated token.
import { readFileSync, statSync } from 'node:fs';
import { ApiError } from './api-error.js';

export class WatchedFile {
  readonly #path: string;
  #text = '';
  #version: string | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * The current text of the file: calls stat, and reads if the file is another one or has changed.
   * Follows symbolic links, which the kubelet uses to replace a whole folder at once.
   * @throws ERR_API_CREDENTIALS
   */
  read(): string {
    try {
      const { ino, size, mtimeMs } = statSync(this.#path);
      const version = `${ino} ${size} ${mtimeMs}`;
      if (version !== this.#version) {
        this.#text = readFileSync(this.#path, 'utf8').trim();
        this.#version = version;
      }
    } catch (error) {
      throw this.#error((error as NodeJS.ErrnoException).message, error);
    }
    if (this.#text === '') throw this.#error('it is empty');
    return this.#text;
  }

  /** Like {@link read}, even if the file looks unchanged. @throws like {@link read} */
  readAgain(): string {
    this.#version = undefined;
    return this.read();
  }

  #error(why: string, cause?: unknown): ApiError {
    return new ApiError('ERR_API_CREDENTIALS', `${this.#path}: ${why}`, { value: this.#path, cause });
  }
}
