// WatchedFile: a small file that others replace, such as a token that is rotated.
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
   * What the file has now: a stat, and a read where it is another or has changed. Through symbolic
   * links, by which the kubelet replaces a whole folder at once.
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

  /** As {@link read}, also where the file looks unchanged. @throws as that */
  readAgain(): string {
    this.#version = undefined;
    return this.read();
  }

  #error(why: string, cause?: unknown): ApiError {
    return new ApiError('ERR_API_CREDENTIALS', `${this.#path}: ${why}`, { value: this.#path, cause });
  }
}
