// StateFolder: the folder of a state and the folders inside it, while it is open.
import { join } from 'node:path';
import type { NativeFolder } from '../base/native-files.js';
import { ownFilesIn, partOf, using } from './files/parts.js';
import { openFolder } from './folder/folder.js';
import { explaining } from './folder/folder-error.js';
import type { StatePart } from './store.js';

/** Reopening keeps the same folder objects. */
export class StateFolder {
  readonly folder: NativeFolder;
  readonly owners: NativeFolder;
  readonly waiting: NativeFolder;
  // By the name of its folder.
  readonly #parts = new Map<string, StatePart>();
  /** The open folders inside. */
  readonly inside: NativeFolder[];
  #isOpen = true;

  /** Opens the folder, or makes it. @throws ERR_STATE_FOLDER */
  constructor(
    private readonly path: string,
    private readonly scope: 'machine' | 'private',
  ) {
    const { folder, owners, waiting } = openFolder(path, scope);
    this.folder = folder;
    this.owners = owners;
    this.waiting = waiting;
    this.inside = [owners, waiting];
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get #folders(): NativeFolder[] {
    return [this.folder, ...this.inside];
  }

  /** True if the paths still lead to the open folders. */
  get isCurrent(): boolean {
    return this.folder.isCurrent(...this.inside);
  }

  /** See {@link Store.part}. @throws ERR_STATE_FOLDER */
  part<Part extends StatePart>(name: string, make: (folder: NativeFolder, path: string) => Part): Part {
    const existing = this.#parts.get(name);
    if (existing) return existing as Part;
    const folder = explaining(this.path, () => ownFilesIn(this.folder, name));
    const part = make(folder, join(this.path, name));
    this.#parts.set(name, part);
    this.inside.push(folder);
    return part;
  }

  rejoinParts(): void {
    for (const part of this.#parts.values()) part.rejoin();
  }

  /** Opens the folders inside that are there now, or makes them. @throws ERR_STATE_FOLDER */
  reopenInside(): void {
    const openers = [partOf, partOf, ...Array.from(this.#parts, () => ownFilesIn)];
    const names = ['owners', 'waiting', ...this.#parts.keys()];
    explaining(this.path, () => {
      this.inside.forEach((each, i) => {
        using(openers[i]!(this.folder, names[i]!), (there) => each.become(there));
      });
    });
  }

  /** Opens or makes the folder that the path leads to now. @throws ERR_STATE_FOLDER */
  reopen(): void {
    const { folder, owners, waiting } = openFolder(this.path, this.scope);
    const folders = [folder, owners, waiting];
    try {
      for (const name of this.#parts.keys())
        folders.push(explaining(this.path, () => ownFilesIn(folder, name)));
      this.#folders.forEach((each, i) => {
        each.become(folders[i]!);
      });
      this.#isOpen = true;
    } finally {
      for (const each of folders) each.close();
    }
  }

  close(): void {
    this.#isOpen = false;
    for (const part of this.#parts.values()) part.close();
    for (const folder of this.#folders) folder.close();
  }
}
