// NarrowedContainers: shared containers that have left CPUs, and what they had before. Kept in
// files, so that a later process can restore it.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from 'numalign';

export interface Narrowing {
  /** What the container had, and must get back. */
  readonly before: CpuSet;
  /** What numalign has set. If the container has something else, another client has set that. */
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

  /** Undefined if nothing is on record, or the record is damaged. */
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

  /** Forgets containers that no longer run. */
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

  // The id comes from a runtime: it must not be a path.
  #file(id: string): string {
    if (!ID.test(id) || id.startsWith('.')) throw new TypeError(`no container has the id ${id}`);
    return join(this.#folder, id + SUFFIX);
  }
}
