// OwnOwner: this environment (main thread or Worker) as an owner. Its locked file says which grants
// are its own.
import { isHeldBy } from '../../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { randomUUID } from '../../base/builtins.js';
import type { NativeFolder, NativeOwner } from '../../base/native-files.js';
import { encodeOwnerFile, type OwnerFile } from '../files/owner-file.js';
import { lockRange } from '../files/owner-locks.js';
import { isSame } from './owner-pods.js';
import { fileOf, type Header, newOwner } from './owner-record.js';

export class OwnOwner {
  readonly record: OwnerRecord;
  readonly #folder: NativeFolder;
  readonly #path: string;
  #lock: NativeOwner;
  // Of files that were removed: where the folder is now that they were in, its users see that this
  // process lives.
  readonly #earlier: NativeOwner[] = [];
  #file: OwnerFile;

  /** `folder`: owners/ of the state folder at `path`. @throws ERR_SYSCALL */
  constructor(folder: NativeFolder, path: string, header: Header) {
    this.record = newOwner('process', randomUUID());
    this.#folder = folder;
    this.#path = path;
    this.#file = fileOf(this.record, header, []);
    this.#lock = this.#createFile(encodeOwnerFile(this.#file));
  }

  #createFile(text: string): NativeOwner {
    const { uuid } = this.record;
    return this.#folder.createOwner(uuid, text, ...lockRange(uuid, this.#path));
  }

  /** What is in the file. */
  get file(): OwnerFile {
    return this.#file;
  }

  get fd(): number {
    return this.#lock.fd;
  }

  /** Whether the file still has its name. */
  get isCurrent(): boolean {
    return this.#lock.isCurrent(this.#folder);
  }

  /** Those of the pods that are its own. */
  ofIts(pods: readonly PodAssignment[]): PodAssignment[] {
    return pods.filter((pod) => isHeldBy(pod, this.record.uuid));
  }

  /** `isDamaged`: the file may be, and is written in any case. @throws ERR_SYSCALL */
  write(header: Header, pods: readonly PodAssignment[], isDamaged = false): void {
    if (!isDamaged && isSame(this.#file.pods, pods)) {
      // The same objects compare faster the next time.
      this.#file = { ...this.#file, pods };
      return;
    }
    const file = fileOf(this.record, header, pods);
    try {
      this.#lock.write(encodeOwnerFile(file));
    } catch (error) {
      // What fitted before fits again.
      this.#lock.write(encodeOwnerFile(this.#file));
      throw error;
    }
    this.#file = file;
  }

  /**
   * Writes the file again where it was removed, replaced or overwritten. Answers whether it was.
   * @throws ERR_SYSCALL
   */
  reassert(): boolean {
    const text = encodeOwnerFile(this.#file);
    const isThere = this.isCurrent;
    if (isThere && this.#folder.read(this.record.uuid)?.toString('utf8') === text) return false;
    if (isThere) {
      this.#lock.write(text);
      return true;
    }
    const lock = this.#createFile(text);
    this.#earlier.push(this.#lock);
    this.#lock = lock;
    return true;
  }

  /** Lets its locks go: it is dead, unless a child has a copy. */
  close(): void {
    for (const lock of [this.#lock, ...this.#earlier]) lock.close();
  }
}
