// JournalFollower: state.json as it grows. What was read is not read again: to look costs what was
// appended since.
import { NumalignError } from '../../base/errors.js';
import type { NativeFolder, NativeJournal } from '../../base/native-files.js';
import { inSlices } from '../../base/steps.js';
import type { Checkpoint } from '../format/checkpoint.js';
import { headIn, withLines } from '../format/journal.js';
import type { SealedText } from '../format/sealed-json.js';
import {
  COPY_FILE,
  committedIn,
  type FoundState,
  type GoodState,
  highestOf,
  judgementSteps,
  judgeState,
  STATE_FILE,
  sizeOf,
  whyUnreadable,
} from './state-files.js';

// Some milliseconds of work.
const LONG = 1 << 16;

// More than a head is long.
const HEAD_BYTES = 4096;

/** Takes no lock, and never sees half a state. */
export class JournalFollower {
  readonly #folder: NativeFolder;
  #journal: NativeJournal | undefined;
  // What the file said last, and the version that it had then.
  #good: GoodState | undefined;
  #version: string | undefined;
  // The first read of a long file, under way.
  #preparing: Promise<void> | undefined;
  // How often what was read was forgotten.
  #forgotten = 0;

  constructor(folder: NativeFolder) {
    this.#folder = folder;
  }

  /** What the file said last, where it was good. */
  get good(): GoodState | undefined {
    return this.#good;
  }

  /** The open file of {@link good}. */
  get file(): NativeJournal | undefined {
    return this.#journal;
  }

  /**
   * What the file says now. Where nothing has changed it is the same object.
   * @throws ERR_STATE_VERSION, and ERR_SYSCALL where it cannot be read for reasons that say nothing
   *   about the file
   */
  look(): FoundState {
    if (this.#good && this.#journal?.isUntouched()) return this.#good;
    const version = this.#folder.version(STATE_FILE);
    if (version === undefined) {
      this.forget();
      return { kind: 'missing' };
    }
    if (this.#good && version === this.#version) {
      this.#journal?.confirm();
      return this.#good;
    }
    const good = this.#good && this.#journal && this.#follow(this.#good, this.#journal, version);
    if (good && !good.place.hasTail) return this.#note(good, version);
    return this.#readWhole();
  }

  /**
   * Before the first {@link look} at a long file: reads it with turns of the event loop in between, so
   * that to look costs what was appended meanwhile. Undefined where there is nothing to wait for. What
   * is wrong with the file is found by the look.
   */
  prepare(): Promise<void> | undefined {
    if (this.#good) return undefined;
    if (this.#preparing) return this.#preparing;
    let journal: NativeJournal | undefined;
    try {
      const highest = highestOf(this.#folder);
      journal = this.#open();
      const version = journal?.version() ?? '';
      if (sizeOf(version) >= LONG) {
        this.#preparing = this.#prepared(journal!, version, highest);
        return this.#preparing;
      }
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    }
    journal?.close();
    return undefined;
  }

  async #prepared(journal: NativeJournal, version: string, highest: number): Promise<void> {
    const forgotten = this.#forgotten;
    let found: FoundState | undefined;
    try {
      found = await inSlices(judgementSteps(journal.read(0).subarray(0, sizeOf(version)), highest));
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    } finally {
      // Somebody may have looked meanwhile, or want to have read nothing.
      const isWanted = forgotten === this.#forgotten;
      if (isWanted) this.#preparing = undefined;
      if (isWanted && found?.kind === 'good' && !found.place.hasTail) {
        this.#journal = journal;
        this.#note(found, version);
      } else journal.close();
    }
  }

  #note(good: GoodState, version: string): GoodState {
    this.#good = good;
    this.#version = version;
    return good;
  }

  /** As if nothing had been read. */
  forget(): void {
    this.#preparing = undefined;
    this.#forgotten++;
    this.#journal?.close();
    this.#journal = undefined;
    this.#good = undefined;
    this.#version = undefined;
  }

  /** Cuts off what was not finished. REQUIRES: the lock. @throws ERR_SYSCALL */
  cutTail(): void {
    if (this.#good?.place.hasTail) this.#journal!.cut(this.#good.place.end, this.#folder);
  }

  /**
   * What was appended here to `good` need not be read, unless it was meanwhile. `version`: of the
   * file with it.
   */
  noteAppended(good: GoodState, checkpoint: Checkpoint, { line, seal }: SealedText, version: string): void {
    if (this.#good !== good) return;
    const { place } = good;
    const end = place.end + Buffer.byteLength(line);
    this.#note({ kind: 'good', checkpoint, place: { ...place, end, seal, hasTail: false } }, version);
  }

  /** Another file was put in place here of that of `good`, which says `next`. */
  noteReplaced(good: GoodState | undefined, next: GoodState, version: string): void {
    if (this.#good !== good) return;
    this.forget();
    this.#journal = this.#open();
    if (this.#journal?.version() === version) this.#note(next, version);
    else this.forget();
  }

  // Undefined where the file has to be read whole.
  #follow(good: GoodState, journal: NativeJournal, version: string): GoodState | undefined {
    // A line of a newer file may build on what is not known here.
    if (good.checkpoint.refusal) return undefined;
    const isSame = inodeOf(version) === inodeOf(this.#version!);
    try {
      return isSame ? this.#grow(good, journal, sizeOf(version)) : this.#succeed(good, journal);
    } catch (error) {
      if (error instanceof NumalignError && /^ERR_(STATE_CORRUPT|STATE_VERSION|SYSCALL)$/.test(error.code))
        return undefined;
      throw error;
    }
  }

  // `size`: what is behind it comes with the next look.
  #grow(good: GoodState, journal: NativeJournal, size: number): GoodState | undefined {
    const { place } = good;
    if (size > place.end) return withLines(good, journal.read(place.end, size - place.end));
    // Cut off by somebody, or changed where it was read.
    if (size < place.end || !place.hasTail) return undefined;
    return { ...good, place: { ...place, hasTail: false } };
  }

  // Another file has its name. Where it begins with what the old one ended with, only the rest is
  // read. Undefined where it does not.
  #succeed(good: GoodState, journal: NativeJournal): GoodState | undefined {
    const last = withLines(good, journal.read(good.place.end));
    const next = this.#open();
    if (!next) return undefined;
    // Should that fail, the file is closed with what is forgotten.
    journal.close();
    this.#journal = next;
    const head = headIn(next.read(0, HEAD_BYTES));
    const { checkpoint, place } = last;
    if (head?.generation !== checkpoint.generation || head.follows !== place.seal) return undefined;
    const begin = { ...place, snapshot: head.snapshot, end: head.snapshot, hasTail: false };
    return withLines({ ...last, place: begin }, next.read(head.snapshot));
  }

  #open(): NativeJournal | undefined {
    return this.#folder.openJournal(STATE_FILE);
  }

  // `least`: the generation that is known to have been committed.
  #readWhole(least = 0): FoundState {
    this.forget();
    // Before the file is read: it is written after each commit.
    const highest = Math.max(least, highestOf(this.#folder));
    let bytes: Buffer;
    let version: string;
    try {
      const journal = this.#open();
      if (!journal) return { kind: 'missing' };
      this.#journal = journal;
      version = journal.version();
      // Limited in size, as any file here is.
      bytes = journal.read(0).subarray(0, sizeOf(version));
    } catch (error) {
      const found = whyUnreadable(this.#folder, error);
      if (found === undefined) throw error;
      return found;
    }
    const found = judgeState(bytes, highest);
    // Whether the last line was committed after all. Then the file is read again: it may be another by now.
    const copied =
      found.kind === 'good' && found.place.hasTail ? (committedIn(this.#folder, COPY_FILE) ?? 0) : 0;
    if (copied > highest) return this.#readWhole(copied);
    if (found.kind === 'good') return this.#note(found, version);
    this.forget();
    return found;
  }
}

const inodeOf = (version: string) => version.slice(0, version.indexOf(':'));
