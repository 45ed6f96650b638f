// StateReader: what this environment has read of a state's files, and what it makes of them where
// they are damaged. Takes no lock, and never sees half a state.
import type { TotalOn } from '../account/booked-memory.js';
import { NumalignError } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import type { Checkpoint } from './files/checkpoint.js';
import { type FoundState, findState, isOfBoot, PREVIOUS_FILE, STATE_FILE } from './files/state-files.js';
import { explaining, folderError } from './folder/folder-error.js';
import type { Owners } from './owners/owners.js';
import { type Clues, flawOf, generationAfter, lastGood, rebuild } from './owners/recovery.js';
import type { StateFolder } from './state-folder.js';

/** The highest generation that was committed: state.json may be put back from a copy. */
export const HIGHEST = 'generation';

type GoodState = Extract<FoundState, { kind: 'good' }>;

export class StateReader {
  /** What a NUMA node has of a type of memory, as the last transaction said. */
  totalOn: TotalOn = () => 0;
  readonly #path: string;
  readonly #folder: NativeFolder;
  readonly #ownersFolder: NativeFolder;
  readonly #owners: Owners;
  #bootId: string;
  // The last good file that was read, and its version.
  #good: GoodState | undefined;
  #version: string | undefined;
  #hasTransacted = false;
  #generation = 0;
  // Somebody has put another folder in the place of the one that was open.
  #isReplaced = false;

  constructor(path: string, { folder, owners: ownersFolder }: StateFolder, owners: Owners, bootId: string) {
    this.#path = path;
    this.#folder = folder;
    this.#ownersFolder = ownersFolder;
    this.#owners = owners;
    this.#bootId = bootId;
  }

  /** The highest that was seen: none comes twice. */
  get generation(): number {
    return this.#generation;
  }

  /** Generations up to this one have been seen. */
  raise(generation: number): void {
    this.#generation = Math.max(this.#generation, generation);
  }

  get bootId(): string {
    return this.#bootId;
  }

  /** Whether the checkpoint is of this boot: grants of an earlier one are void. */
  isOfThisBoot(checkpoint: Checkpoint): boolean {
    return checkpoint.bootId === this.#bootId;
  }

  /** The last good one that was read. */
  get known(): Checkpoint | undefined {
    return this.#good?.checkpoint;
  }

  /** See {@link Ledger.read}. */
  read(): Checkpoint | undefined {
    const version = this.#folder.version(STATE_FILE);
    if (this.#isRead(version)) return this.#good?.checkpoint;
    return explaining(this.#path, () => {
      const found = this.#load(version);
      if (found.kind === 'good') return found.checkpoint;
      this.checkCurrent();
      return this.view(this.gather(found));
    });
  }

  /** As {@link read}, of a file that is good. */
  readGood(): Checkpoint | undefined {
    const version = this.#folder.version(STATE_FILE);
    if (this.#isRead(version)) return this.#good?.checkpoint;
    const found = explaining(this.#path, () => this.#load(version));
    return found.kind === 'good' ? found.checkpoint : undefined;
  }

  #isRead(version: string | undefined): boolean {
    return version !== undefined && version === this.#version;
  }

  /** What is there, by its bytes: two versions may look the same. */
  load(): FoundState {
    return this.#load(this.#folder.version(STATE_FILE));
  }

  // A commit may come between the caller's stat and this read: the version is then too old, and the
  // next read looks again.
  #load(version: string | undefined): FoundState {
    this.#version = undefined;
    this.#forgetReplaced(version);
    const found = findState(this.#folder, STATE_FILE, this.#good);
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    if (checkpoint.generation < this.#generation) {
      const why = `it is older than generation ${this.#generation}, which was here before`;
      return { kind: 'damaged', why, generation: checkpoint.generation, checkpoint };
    }
    this.#generation = checkpoint.generation;
    this.#good = found;
    this.#version = version;
    return found;
  }

  /** Whether the state's file has these bytes. */
  finds(bytes: Buffer): boolean {
    const found = this.#load(undefined);
    return found.kind === 'good' && found.bytes.equals(bytes);
  }

  /** What was written need not be decoded, where that is what is read. */
  noteCommitted(checkpoint: Checkpoint, bytes: Buffer, version: string | undefined): void {
    this.#good = { kind: 'good', checkpoint, bytes };
    this.#version = version;
    this.raise(checkpoint.generation);
  }

  /** As a transaction finds it: {@link load}, unless living owners know better. */
  loadChecked(): FoundState {
    return this.#checkPast(this.load());
  }

  // A whole file may have been put back from a copy. An opener has seen no generation yet, but
  // living owners have.
  #checkPast(found: FoundState): FoundState {
    const isFirst = !this.#hasTransacted;
    this.#hasTransacted = true;
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    this.#adoptBoot(checkpoint);
    const highest = this.#highest();
    const isOlder = highest > checkpoint.generation;
    const isAsked = isFirst && this.isOfThisBoot(checkpoint);
    const why = isOlder
      ? `it is older than generation ${highest}, which was committed here`
      : isAsked && flawOf(checkpoint, this.#owners.find());
    return why ? { kind: 'damaged', why, generation: checkpoint.generation, checkpoint } : found;
  }

  // 0 where there is no such file, or somebody has put something else there. Longer numbers leave
  // no room to count on.
  #highest(): number {
    try {
      const text = this.#folder.read(HIGHEST)?.toString('latin1') ?? '';
      return /^\d{1,15}$/.test(text) ? Number(text) : 0;
    } catch (error) {
      if (error instanceof NumalignError) return 0;
      throw error;
    }
  }

  // Under the id of the others, so that what this process commits is of this boot for them too.
  #adoptBoot({ bootId }: Checkpoint): void {
    if (bootId === this.#bootId || !isOfBoot(bootId, this.#bootId, this.#ownersFolder)) return;
    this.#bootId = bootId;
    this.#owners.renameBoot(bootId);
  }

  /** What is left of a state that is damaged, or gone. */
  gather(found: FoundState): Clues {
    const previous = findState(this.#folder, PREVIOUS_FILE);
    const base = lastGood([found, previous], this.#good?.checkpoint);
    if (base) this.#adoptBoot(base);
    return { found, previous, base, owners: this.#owners.find(), highest: this.#highest() };
  }

  /** The state as it is put together from what is left of it. */
  view(clues: Clues): Checkpoint | undefined {
    const rebuilt = rebuild(clues, this.#bootId, this.totalOn);
    const generation = Math.max(this.#generation, generationAfter(clues) - 1);
    return rebuilt && { ...rebuilt, generation, writtenAt: new Date().toISOString() };
  }

  /** @throws ERR_STATE_FOLDER where another folder, or none, is at the path */
  checkCurrent(): void {
    if (!this.#folder.isCurrent()) throw this.removedError();
  }

  removedError(): NumalignError {
    return folderError(this.#path, 'it was removed or replaced while it was open');
  }

  /** As if nothing had been read. */
  forget(): void {
    this.#version = undefined;
    this.#forgetRead();
  }

  /** Another folder is at the path. */
  noteReplaced(): void {
    this.#isReplaced = true;
  }

  // What is in the folder now comes before what was there: only where there is nothing, this
  // process knows more.
  #forgetReplaced(version: string | undefined): void {
    if (!this.#isReplaced || version === undefined) return;
    this.#isReplaced = false;
    this.#forgetRead();
  }

  #forgetRead(): void {
    this.#hasTransacted = false;
    this.#good = undefined;
    this.#generation = 0;
  }
}
