// NarrowedContainers: which shared containers have left CPUs, and what they had before; in files, so
// that a later process can give it back.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from 'numalign';

export interface Narrowing {
  /** What the container had, and is to have again. */
  readonly before: CpuSet;
  /** What it has been given; where it has something else, somebody else has decided so. */
  readonly after: CpuSet;
}

const SUFFIX = '.json';
const ID = /^[\w.-]{1,128}$/;

export class NarrowedContainers {
  readonly #folder: string;

  /** `folder`: made when there is something to keep. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Undefined where none is on record, or the record is damaged. */
  get(id: string): Narrowing | undefined {
    try {
      const { before, after } = JSON.parse(readFileSync(this.#file(id), 'utf8'));
      return { before: CpuSet.parse(before), after: CpuSet.parse(after) };
    } catch {
      return undefined;
    }
  }

  set(id: string, { before, after }: Narrowing): void {
    const file = this.#file(id);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const temporary = `${file}.${process.pid}`;
    writeFileSync(temporary, `${JSON.stringify({ before, after })}\n`, { mode: 0o600 });
    renameSync(temporary, file);
  }

  delete(id: string): void {
    rmSync(this.#file(id), { force: true });
  }

  /** Forgets containers that do not run any more. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#ids()) if (!ids.has(id)) this.delete(id);
  }

  #ids(): string[] {
    try {
      return readdirSync(this.#folder)
        .filter((file) => file.endsWith(SUFFIX))
        .map((file) => file.slice(0, -SUFFIX.length));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  // A runtime says what the id is: it must be no path.
  #file(id: string): string {
    if (!ID.test(id) || id.startsWith('.')) throw new TypeError(`no container has the id ${id}`);
    return join(this.#folder, id + SUFFIX);
  }
}
