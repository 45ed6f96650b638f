// StateReader: what this environment has read of a state's files, and what it makes of them where
// they are damaged. Takes no lock, and never sees half a state.
import type { TotalOn } from '../account/booked-memory.js';
import type { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { JournalFollower } from './files/journal-follower.js';
import { COPY_FILE, damaged, type FoundState, findState, highestOf, isOfBoot } from './files/state-files.js';
import { explaining, folderError } from './folder/folder-error.js';
import type { Checkpoint } from './format/checkpoint.js';
import type { Owners } from './owners/owners.js';
import { type Clues, flawOf, generationAfter, lastGood, rebuild } from './owners/recovery.js';
import type { StateFolder } from './state-folder.js';

export class StateReader {
  /** What a NUMA node has of a type of memory, as the last transaction said. */
  totalOn: TotalOn = () => 0;
  readonly journal: JournalFollower;
  readonly #path: string;
  readonly #folder: NativeFolder;
  readonly #ownersFolder: NativeFolder;
  readonly #owners: Owners;
  #bootId: string;
  // The last good one that was read.
  #known: Checkpoint | undefined;
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
    this.journal = new JournalFollower(folder);
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
    return this.#known;
  }

  /** See {@link Ledger.read}. */
  read(): Checkpoint | undefined {
    return explaining(this.#path, () => {
      const found = this.load();
      if (found.kind === 'good') return found.checkpoint;
      this.checkCurrent();
      return this.view(this.gather(found));
    });
  }

  /** As {@link read}, of a file that is good. */
  readGood(): Checkpoint | undefined {
    const found = explaining(this.#path, () => this.load());
    return found.kind === 'good' ? found.checkpoint : undefined;
  }

  /** What is there. */
  load(): FoundState {
    const found = this.journal.look();
    if (found.kind !== 'missing') this.#forgetReplaced();
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    if (checkpoint.generation < this.#generation) {
      const why = `it is older than generation ${this.#generation}, which was here before`;
      return damaged(why, { generation: checkpoint.generation, checkpoint });
    }
    this.#generation = checkpoint.generation;
    this.#known = checkpoint;
    return found;
  }

  /** Whether this is the last that the state's file says. */
  finds({ generation, writtenAt }: Checkpoint): boolean {
    const found = this.load();
    if (found.kind !== 'good') return false;
    const { checkpoint } = found;
    return checkpoint.generation === generation && checkpoint.writtenAt === writtenAt;
  }

  /** What was written need not be decoded, where that is what is read. */
  noteCommitted(checkpoint: Checkpoint): void {
    if (checkpoint.generation < this.#generation) return;
    this.#known = checkpoint;
    this.raise(checkpoint.generation);
  }

  /** As a transaction finds it: {@link load}, unless living owners know better. */
  loadChecked(lock: NativeLock): FoundState {
    return this.#checkPast(this.load(), lock.number());
  }

  // A whole file may have been put back from a copy. An opener has seen no generation yet, but
  // living owners have.
  #checkPast(found: FoundState, highest: number): FoundState {
    const isFirst = !this.#hasTransacted;
    this.#hasTransacted = true;
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    this.#adoptBoot(checkpoint);
    const isOlder = highest > checkpoint.generation;
    const isAsked = isFirst && this.isOfThisBoot(checkpoint);
    const why = isOlder
      ? `it is older than generation ${highest}, which was committed here`
      : isAsked && flawOf(checkpoint, this.#owners.find(checkpoint));
    return why ? damaged(why, { generation: checkpoint.generation, checkpoint }) : found;
  }

  // Under the id of the others, so that what this process commits is of this boot for them too.
  #adoptBoot({ bootId }: Checkpoint): void {
    if (bootId === this.#bootId || !isOfBoot(bootId, this.#bootId, this.#ownersFolder)) return;
    this.#bootId = bootId;
    this.#owners.renameBoot(bootId);
  }

  /** What is left of a state that is damaged, or gone. */
  gather(found: FoundState): Clues {
    const previous = findState(this.#folder, COPY_FILE);
    const base = lastGood(found, previous, () => this.#folder.read(COPY_FILE), this.#known);
    if (base) this.#adoptBoot(base);
    return { found, previous, base, owners: this.#owners.find(), highest: highestOf(this.#folder) };
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
    this.journal.forget();
    this.#forgetRead();
  }

  /** Another folder is at the path. */
  noteReplaced(): void {
    this.journal.forget();
    this.#isReplaced = true;
  }

  // What is in the folder now comes before what was there: only where there is nothing, this
  // process knows more.
  #forgetReplaced(): void {
    if (!this.#isReplaced) return;
    this.#isReplaced = false;
    this.#forgetRead();
  }

  #forgetRead(): void {
    this.#hasTransacted = false;
    this.#known = undefined;
    this.#generation = 0;
  }
}
