// JournalFollower: reads state.json as it grows. A look reads only what was appended since the
// last.
import { isNumalignError, NumalignError } from '../../base/errors.js';
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
  inodeOf,
  judgeState,
  judgeStateSteps,
  STATE_FILE,
  sizeOf,
  whyUnreadable,
} from './state-files.js';

// Takes milliseconds to read.
const LONG = 1 << 16;

// Takes less time to read than a decision.
const FEW_LINES = 1 << 14;

// Longer than any head.
const HEAD_BYTES = 4096;

/** Reads without a lock and never sees half a state. */
export class JournalFollower {
  // The file that had the name at the last look, good or not. It shows others `highest`.
  #journal: NativeJournal | undefined;
  #highest = 0;
  // The last good state and the version of the file at that time.
  #good: GoodState | undefined;
  #version: string | undefined;
  // The first read of a long file, while it runs.
  #preparing: Promise<void> | undefined;
  // The state after a line that this process is appending to `good`.
  #appended: { readonly good: GoodState; readonly next: GoodState } | undefined;
  // Counts calls of forget().
  #forgotten = 0;
  #wholeReads = 0;

  constructor(private readonly folder: NativeFolder) {}

  /** The highest generation that this process knows. None is used twice. */
  get highest(): number {
    return this.#highest;
  }

  /** Notes that generations up to this one are used. */
  raise(generation: number): void {
    this.#highest = Math.max(this.#highest, generation);
  }

  /** The last good state read from the file. */
  get good(): GoodState | undefined {
    return this.#good;
  }

  /** How often it read a good state that did not continue what it knew. */
  get wholeReads(): number {
    return this.#wholeReads;
  }

  /** The open file. If there is a good state, it is behind that. */
  get file(): NativeJournal | undefined {
    return this.#journal;
  }

  /** A file that is shorter has at most a few more lines than were read. */
  get limit(): number {
    return (this.#good?.place.end ?? 0) + FEW_LINES;
  }

  /**
   * True if the file is the one that was read, with at most a few more lines. A newer format is in
   * another file.
   */
  get isAlmostKnown(): boolean {
    const now = this.#good && this.#versionNow();
    return now !== undefined && inodeOf(now) === inodeOf(this.#version!) && sizeOf(now) < this.limit;
  }

  /**
   * Reads the current state. Returns the same object if nothing changed. `known`: the version that the
   * name leads to, if that was looked at.
   * @throws ERR_STATE_VERSION, and ERR_SYSCALL if the file cannot be read for reasons outside the
   *   file
   */
  look(known?: string): FoundState {
    const version = known ?? this.#versionNow();
    if (version === undefined) {
      this.forget(this.#highest);
      return { kind: 'missing' };
    }
    if (this.#good && version === this.#version) return this.#good;
    const own = this.#ownAppend(version);
    if (own) return own;
    const good = this.#good && this.#journal && this.#follow(this.#good, this.#journal, version);
    if (good && !good.place.hasTail) return this.#note(good, version);
    return this.#readWhole();
  }

  #versionNow(): string | undefined {
    if (!this.#good) return this.folder.version(STATE_FILE);
    const found = this.#journal!.lookIn(this.folder);
    if (found === true) return this.#version;
    // While a line is being appended, the file says more than is known.
    if (found === this.#version && !this.#appended) this.#journal!.know();
    return found;
  }

  /**
   * Reads a long file before the first {@link look}, in slices with turns of the event loop in
   * between. The look then reads only what was appended meanwhile, and it reports what is wrong
   * with the file. Returns undefined if there is nothing to wait for.
   */
  prepare(): Promise<void> | undefined {
    if (this.#good || this.#preparing) return this.#preparing;
    try {
      const highest = highestOf(this.folder);
      const journal = this.#open();
      if (!journal) return undefined;
      this.#keep(journal);
      const version = journal.version();
      const size = sizeOf(version);
      if (size >= LONG) this.#preparing = this.#prepared(journal.read(0).subarray(0, size), version, highest);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    }
    return this.#preparing;
  }

  async #prepared(bytes: Buffer, version: string, highest: number): Promise<void> {
    const forgotten = this.#forgotten;
    // A look or forget() may come in between.
    const isCurrent = () => forgotten === this.#forgotten;
    try {
      const found = await inSlices(judgeStateSteps(bytes, highest));
      if (isCurrent() && found.kind === 'good' && !found.place.hasTail) this.#noteWhole(found, version);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
    } finally {
      if (isCurrent()) this.#preparing = undefined;
    }
  }

  #note(good: GoodState, version: string, isShown = false): GoodState {
    this.#good = good;
    this.#version = version;
    this.raise(good.checkpoint.generation);
    if (!isShown) this.#journal?.show(this.#highest);
    return good;
  }

  #noteWhole(good: GoodState, version: string): GoodState {
    this.#wholeReads++;
    return this.#note(good, version);
  }

  #keep(journal: NativeJournal): void {
    if (this.#highest > 0) journal.show(this.#highest);
    // Not earlier: others may look meanwhile.
    this.#journal?.close();
    this.#journal = journal;
  }

  /** Forgets all it has read, but for the generation `highest`. */
  forget(highest = 0): void {
    this.#forgetFile();
    this.#journal?.close();
    this.#journal = undefined;
    this.#highest = highest;
  }

  #forgetFile(): void {
    this.#preparing = undefined;
    this.#forgotten++;
    this.#good = undefined;
    this.#version = undefined;
  }

  /** Cuts off an unfinished line. REQUIRES: the lock. @throws ERR_SYSCALL */
  cutTail(): void {
    if (this.#good?.place.hasTail) this.#journal!.cut(this.#good.place.end, this.folder);
  }

  /**
   * Appends a line to `good` with `write`, which returns the version of the file with that line. It is
   * not read again, unless the follower moves on meanwhile. Returns undefined if that is done at once.
   */
  append(
    good: GoodState,
    checkpoint: Checkpoint,
    { line, seal }: SealedText,
    write: (file: NativeJournal, at: number) => string | Promise<string>,
  ): Promise<void> | undefined {
    const end = good.place.end + Buffer.byteLength(line);
    const place = { end, seal, snapshot: good.place.snapshot, hasTail: false };
    const next: GoodState = { kind: 'good', checkpoint, place };
    this.#appended = { good, next };
    const settle = (version?: string) => {
      if (version !== undefined && this.#good === good) this.#note(next, version, true);
      // The line in the file may be another process's.
      if (version === undefined && this.#good === next) this.#forgetFile();
      // The next append may have begun: the last one releases the lock before it resolves.
      if (this.#appended?.next === next) this.#appended = undefined;
    };
    const fail = (error: unknown): never => {
      settle();
      throw error;
    };
    try {
      const version = write(this.#journal!, good.place.end);
      if (typeof version !== 'string') return version.then(settle, fail);
      settle(version);
      return undefined;
    } catch (error) {
      return fail(error);
    }
  }

  // What a look finds while this process appends, with the lock: the kernel changes a file's time before
  // its size, and its size page by page. Undefined: something else has happened.
  #ownAppend(version: string): GoodState | undefined {
    const { good, next } = this.#appended ?? {};
    if (!good || !next || this.#good !== good || inodeOf(version) !== inodeOf(this.#version!))
      return undefined;
    const size = sizeOf(version);
    if (size === next.place.end) return this.#note(next, version);
    return size >= good.place.end && size < next.place.end ? good : undefined;
  }

  /** Takes over a file that this process put in the place of `good`. The new file says `next`. */
  noteReplaced(good: GoodState | undefined, next: GoodState, version: string): void {
    if (this.#good !== good) return;
    this.#forgetFile();
    const journal = this.#open();
    if (!journal) return;
    this.#keep(journal);
    if (journal.version() === version) this.#note(next, version);
  }

  // Undefined means: read the whole file.
  #follow(good: GoodState, journal: NativeJournal, version: string): GoodState | undefined {
    // A line of a newer version may build on members that this version does not know.
    if (good.checkpoint.refusal) return undefined;
    const isSame = inodeOf(version) === inodeOf(this.#version!);
    try {
      return isSame ? this.#grow(good, journal, sizeOf(version)) : this.#succeed(good, journal, version);
    } catch (error) {
      if (isNumalignError(error, 'ERR_STATE_CORRUPT', 'ERR_STATE_VERSION', 'ERR_SYSCALL')) return undefined;
      throw error;
    }
  }

  // `size`: the next look reads what lies behind it.
  #grow(good: GoodState, journal: NativeJournal, size: number): GoodState | undefined {
    const { place } = good;
    if (size > place.end) return withLines(good, journal.read(place.end, size - place.end));
    // Another process cut the file off, or changed what was read before.
    if (size < place.end || !place.hasTail) return undefined;
    return { ...good, place: { ...place, hasTail: false } };
  }

  // Another file has the name now. If it begins where the old one ended, only the rest is read.
  // Undefined if it does not.
  #succeed(good: GoodState, journal: NativeJournal, version: string): GoodState | undefined {
    const last = withLines(good, journal.read(good.place.end));
    const next = this.#open();
    if (!next) return undefined;
    this.#keep(next);
    if (inodeOf(next.version()) !== inodeOf(version)) return undefined;
    const head = headIn(next.read(0, HEAD_BYTES));
    const { checkpoint, place } = last;
    if (head?.generation !== checkpoint.generation || head.follows !== place.seal) return undefined;
    if (sizeOf(version) < head.snapshot) return undefined;
    const begin = { ...place, snapshot: head.snapshot, end: head.snapshot, hasTail: false };
    return withLines({ ...last, place: begin }, next.read(head.snapshot, sizeOf(version) - head.snapshot));
  }

  #open(): NativeJournal | undefined {
    return this.folder.openJournal(STATE_FILE);
  }

  // `least`: a generation that is known to be committed.
  #readWhole(least = 0): FoundState {
    this.#forgetFile();
    // Read before the file, because it is written after each commit.
    const highest = Math.max(least, highestOf(this.folder));
    let bytes: Buffer;
    let version: string;
    try {
      const journal = this.#open();
      if (!journal) return { kind: 'missing' };
      this.#keep(journal);
      version = journal.version();
      // Bounded by the size of the file at open.
      bytes = journal.read(0).subarray(0, sizeOf(version));
    } catch (error) {
      const found = whyUnreadable(this.folder, error);
      if (found === undefined) throw error;
      return found;
    }
    const found = judgeState(bytes, highest);
    // Another process may have committed the last line meanwhile. Then read again, perhaps another
    // file.
    const copyGeneration =
      found.kind === 'good' && found.place.hasTail ? (committedIn(this.folder, COPY_FILE) ?? 0) : 0;
    if (copyGeneration > highest) return this.#readWhole(copyGeneration);
    return found.kind === 'good' ? this.#noteWhole(found, version) : found;
  }
}
