// StateReader: reads a state's files, and recovers the state in memory if they are damaged. Takes
// no lock and never sees half a state.
import type { TotalOn } from '../account/booked-memory.js';
import type { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { JournalFollower } from './files/journal-follower.js';
import { isOfBoot } from './files/owner-claims.js';
import { COPY_FILE, damaged, type FoundState, findState, highestOf } from './files/state-files.js';
import { explain, explaining, folderError } from './folder/folder-error.js';
import type { Checkpoint } from './format/checkpoint.js';
import type { Owners } from './owners/owners.js';
import { type Clues, flawOf, generationAfter, lastGood, rebuild } from './owners/recovery.js';
import type { StateFolder } from './state-folder.js';

export class StateReader {
  /** The memory of a NUMA node by type, in bytes, as in the last transaction. */
  totalOn: TotalOn = () => 0;
  readonly journal: JournalFollower;
  readonly #folder: NativeFolder;
  readonly #ownersFolder: NativeFolder;
  #bootId: string;
  // The last good checkpoint read.
  #lastRead: Checkpoint | undefined;
  // The number of whole reads when the state last agreed with the owners' claims.
  #comparedRead = 0;
  // True if the path has another folder than the one that was open.
  #isReplaced = false;

  constructor(
    private readonly path: string,
    { folder, owners: ownersFolder }: StateFolder,
    private readonly owners: Owners,
    bootId: string,
  ) {
    this.#folder = folder;
    this.#ownersFolder = ownersFolder;
    this.#bootId = bootId;
    this.journal = new JournalFollower(folder);
  }

  get bootId(): string {
    return this.#bootId;
  }

  /** True if the checkpoint is of this boot. Grants of an earlier boot are void. */
  isOfThisBoot(checkpoint: Checkpoint): boolean {
    return checkpoint.bootId === this.#bootId;
  }

  /** The last good checkpoint read. */
  get lastRead(): Checkpoint | undefined {
    return this.#lastRead;
  }

  /** See {@link Ledger.read}. */
  read(): Checkpoint | undefined {
    return explaining(this.path, () => {
      const found = this.load();
      if (found.kind === 'good') return found.checkpoint;
      this.checkCurrent();
      return this.view(this.gather(found));
    });
  }

  /**
   * A good state that is not to be changed, if that is what the file has now. Leaves a few lines of
   * others to be read under the lock.
   */
  readRefused(): Checkpoint | undefined {
    if (this.#lastRead && !this.#lastRead.refusal && this.journal.isAlmostKnown) return undefined;
    const found = explaining(this.path, () => this.load());
    return found.kind === 'good' && found.checkpoint.refusal ? found.checkpoint : undefined;
  }

  /** Reads the state file. `version`: as in {@link JournalFollower.look}. */
  load(version?: string): FoundState {
    const found = this.journal.look(version);
    if (found.kind !== 'missing') this.#forgetReplaced();
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    const { highest } = this.journal;
    if (checkpoint.generation < highest) {
      const why = `it is older than generation ${highest}, which was here before`;
      return damaged(why, { generation: checkpoint.generation, checkpoint });
    }
    this.#lastRead = checkpoint;
    return found;
  }

  /** True if the state file ends with this checkpoint. */
  finds({ generation, writtenAt }: Checkpoint): boolean {
    const found = this.load();
    if (found.kind !== 'good') return false;
    const { checkpoint } = found;
    return checkpoint.generation === generation && checkpoint.writtenAt === writtenAt;
  }

  /** Takes over a committed checkpoint, so that it is not decoded again. */
  noteCommitted(checkpoint: Checkpoint): void {
    if (checkpoint.generation < this.journal.highest) return;
    this.#lastRead = checkpoint;
    this.journal.raise(checkpoint.generation);
  }

  /**
   * Like {@link load} for a transaction: also compares a file that does not continue what this
   * process knew with the claims of living owners.
   */
  loadChecked(lock: NativeLock): FoundState {
    const version = lock.version();
    const found = this.load(version);
    const { highest, file } = this.journal;
    const shown = version === undefined ? file?.shown(highest) : undefined;
    return this.#checkPast(found, Math.max(lock.number(), shown ?? 0));
  }

  // The file may have been restored from a backup, with the lock's. This process may not have seen
  // the newest generation, but living owners have.
  #checkPast(found: FoundState, highest: number): FoundState {
    if (found.kind !== 'good') return found;
    const { checkpoint } = found;
    this.#adoptBoot(checkpoint);
    const { wholeReads } = this.journal;
    const isOlder = highest > checkpoint.generation;
    const needsOwners = this.#comparedRead !== wholeReads && this.isOfThisBoot(checkpoint);
    const why = isOlder
      ? `it is older than generation ${highest}, which was committed here`
      : needsOwners && flawOf(checkpoint, this.owners.find(checkpoint));
    if (why) return damaged(why, { generation: Math.max(highest, checkpoint.generation), checkpoint });
    this.#comparedRead = wholeReads;
    return found;
  }

  // Takes over the boot id of the others, so that they accept this process's commits as of this
  // boot.
  #adoptBoot({ bootId }: Checkpoint): void {
    if (bootId === this.#bootId || !isOfBoot(bootId, this.#bootId, this.#ownersFolder)) return;
    this.#bootId = bootId;
    this.owners.renameBoot(bootId);
  }

  /** Collects what is left of a damaged or missing state. */
  gather(found: FoundState): Clues {
    const previous = findState(this.#folder, COPY_FILE);
    const base = lastGood(found, previous, () => this.#folder.read(COPY_FILE), this.#lastRead);
    if (base) this.#adoptBoot(base);
    return { found, previous, base, owners: this.owners.find(), highest: highestOf(this.#folder) };
  }

  /** Rebuilds the state from its remains. */
  view(clues: Clues): Checkpoint | undefined {
    const rebuilt = explaining(this.path, () => rebuild(clues, this.#bootId, this.totalOn));
    const refusal = rebuilt?.refusal && explain(this.path, rebuilt.refusal);
    const generation = Math.max(this.journal.highest, generationAfter(clues) - 1);
    const writtenAt = new Date().toISOString();
    return rebuilt && { ...rebuilt, ...(refusal && { refusal }), generation, writtenAt };
  }

  /** @throws ERR_STATE_FOLDER if the path has another folder, or none */
  checkCurrent(): void {
    if (!this.#folder.isCurrent()) throw this.removedError();
  }

  removedError(): NumalignError {
    return folderError(this.path, 'it was removed or replaced while it was open: open another manager');
  }

  /** Forgets all it has read. */
  forget(): void {
    this.journal.forget();
    this.#lastRead = undefined;
  }

  /** The path has another folder now. */
  noteReplaced(): void {
    // An earlier state is not the one on which this process's claims are.
    this.journal.forget(this.owners.own.since);
    this.#isReplaced = true;
  }

  // A state in the new folder replaces what this process knows. If there is none, this process
  // still knows the old one.
  #forgetReplaced(): void {
    if (this.#isReplaced) this.#lastRead = undefined;
    this.#isReplaced = false;
  }
}
