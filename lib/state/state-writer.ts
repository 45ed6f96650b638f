// StateWriter: commits the next state, and recovers a damaged one. Every method REQUIRES the lock.
import { setTimeout as pause } from 'node:timers/promises';
import type { Assignments } from '../account/assignments.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import type { NativeFolder, NativeJournal, NativeLock } from '../base/native-files.js';
import { isoTime } from '../base/text/iso-time.js';
import type { UnknownOwner } from './files/owner-claims.js';
import { archive, putAside, quarantine } from './files/put-aside.js';
import {
  COPY_FILE,
  EARLIER_FILE,
  type FoundState,
  findState,
  type GoodState,
  STATE_FILE,
  sizeOf,
} from './files/state-files.js';
import { explain, explaining } from './folder/folder-error.js';
import type { Checkpoint } from './format/checkpoint.js';
import { checkHoldings } from './format/holdings-check.js';
import { encodeJournal, type JournalPlace } from './format/journal.js';
import { areTextsReady, forgetPodTexts, TEXTS_AT_ONCE } from './format/pod-text.js';
import { type SealedText, sealText } from './format/sealed-json.js';
import { changeText } from './format/state-change.js';
import type { Owners } from './owners/owners.js';
import { type Clues, generationAfter, isUnused } from './owners/recovery.js';
import type { StateReader } from './state-reader.js';
import type { StateRecovered } from './store.js';

// An owner may be writing its file outside a transaction.
const OWNER_READS = 5;
// An owner learns from the kernel that its file was removed, but its event loop may be busy.
const LOST_OWNER_READS = 50;
const LOST_OWNER_S = 3;
const OWNER_READ_PAUSE_MS = 10;

// Appended lines are merged once they are longer than the whole state and than this, so that each
// byte is rewritten about once.
const LEAST_TO_COMPACT = 1 << 18;
// The first commit of a process merges fewer: programs that start after it have to read them all.
const FIRST = 1 / 4;

// Pods from a file have no text yet. Texts are made in parts between turns of the event loop, up to
// a limit on the file's length.
const MOST_WAITED = 2;

// A longer file would take milliseconds to copy.
const MOST_KEPT = 1 << 21;

// A file of version 1 cannot take lines.
const isDue = ({ end, snapshot, seal }: JournalPlace, times = 1) =>
  seal === '' || end - snapshot > times * Math.max(LEAST_TO_COMPACT, snapshot);

function quarantineFolder(folder: NativeFolder, name: string): void {
  const found = findState(folder, name);
  if (found.kind === 'damaged' && found.isFolder) quarantine(folder, name, found);
}

// Errors that a new file avoids: the old one is closed to this user, removed or replaced, or the
// kernel may have dropped unwritten data.
const isFileAtFault = ({ syscall, errnoName }: NumalignError) =>
  syscall === 'fdatasync' ||
  (syscall === 'open' && /^E(ACCES|PERM|NOENT|LOOP|ISDIR|NXIO|STALE)$/.test(errnoName ?? ''));

/** What the commit of a state needs. */
interface CommitRequest {
  readonly bootId: string;
  /** Undefined if there is no good state. */
  readonly before: Assignments | undefined;
  readonly next: Assignments;
  readonly lock: NativeLock;
  /** Other processes may go on as soon as the commit is durable. */
  readonly isLast?: boolean;
}

type LockUse = Pick<CommitRequest, 'lock' | 'isLast'>;

/** The state in force, and the line that comes next. */
interface LastChange extends SealedText {
  readonly good: GoodState;
}

export class StateWriter {
  /** The recoveries by this writer, the latest last. */
  readonly recoveries: StateRecovered[] = [];
  // True if a power cut may undo the last commit.
  #isUnsynced = false;
  #hasMended = false;
  #hasCommitted = false;
  // Owners that have not written their lost files although this process has waited.
  #silent: readonly string[] = [];

  constructor(
    private readonly path: string,
    private readonly folder: NativeFolder,
    private readonly owners: Owners,
    private readonly reader: StateReader,
  ) {}

  async commit({ bootId, before, next, ...use }: CommitRequest): Promise<void> {
    // A bug in numalign must not become the record.
    checkHoldings(next);
    const reader = this.reader;
    const generation = reader.journal.highest + 1;
    const checkpoint = { generation, bootId, writtenAt: isoTime(), assignments: next };
    const settle =
      bootId === reader.bootId
        ? explaining(this.path, () => this.owners.claim(generation - 1, before, next))
        : undefined;
    try {
      const writing = this.#write(checkpoint, use, before === undefined);
      if (writing) await writing;
    } catch (error) {
      // The file may be in place although its sync failed. Others may have read it, so the commit
      // counts. If that cannot be told either, the claim stays until the next transaction.
      const isInPlace = unlessRefused(() => reader.finds(checkpoint));
      if (isInPlace === false) settle?.(false);
      if (!isInPlace) throw explain(this.path, error);
      this.#isUnsynced = true;
      // If a power cut undoes the commit, this number shows it.
      use.lock.setNumber(generation);
    }
    this.#hasCommitted = true;
    settle?.(true);
    reader.noteCommitted(checkpoint);
    const { good } = reader.journal;
    // Those of all pods are needed once the next file is due.
    if (!good || !isDue(good.place)) forgetPodTexts();
    if (use.isLast) return;
    // The next decision builds on this state.
    const found = reader.load();
    if (settle && found.kind === 'good') this.owners.follow(found.checkpoint);
  }

  // Returns undefined if it has written at once.
  #write(checkpoint: Checkpoint, use: LockUse, isWhole: boolean): Promise<void> | undefined {
    const { journal } = this.reader;
    const { good } = journal;
    const change = isWhole || !good ? undefined : changeText(good.checkpoint, checkpoint);
    if (!good || change === undefined) return this.#replace(checkpoint, undefined, use);
    const sealed = sealText(change);
    const { pods } = good.checkpoint.assignments;
    const isEarly = !this.#hasCommitted && pods.length <= TEXTS_AT_ONCE;
    // Without its texts, a new file would block the event loop.
    const areReady = () => isDue(good.place, MOST_WAITED) || areTextsReady(pods);
    if (isDue(good.place, isEarly ? FIRST : 1) && areReady())
      return this.#beginNext(checkpoint, { good, ...sealed }, use);
    if (this.#isUnsynced) return this.#replace(checkpoint, { good, ...sealed }, use);
    const replace = (error: unknown) => {
      if (!(error instanceof NumalignError) || !isFileAtFault(error)) throw error;
      return this.#replace(checkpoint, { good, ...sealed }, use);
    };
    try {
      journal.cutTail();
      const { generation } = checkpoint;
      const { lock, isLast = false } = use;
      const append = (file: NativeJournal, at: number) =>
        file.append(at, sealed.line, this.folder, lock, isLast, COPY_FILE, generation);
      return journal.append(good, checkpoint, sealed, append)?.catch(replace);
    } catch (error) {
      return replace(error);
    }
  }

  // Writes a new file in place of the old one. `last`: the checkpoint before, with which the new
  // file begins, and the line of the change.
  async #replace(checkpoint: Checkpoint, last: LastChange | undefined, use: LockUse): Promise<void> {
    const before = this.reader.journal.good;
    const { bytes, place } = last
      ? encodeJournal(last.good.checkpoint, last.good.place.seal || null, last)
      : encodeJournal(checkpoint, null);
    const version = await this.#replaceState(bytes, checkpoint.generation, use);
    this.#isUnsynced = false;
    this.reader.journal.noteReplaced(before, { kind: 'good', checkpoint, place }, version);
  }

  // Keeps the lines before, as a process may ask later what was in force when it started. Only once
  // the new file has its room on the disk.
  async #beginNext(checkpoint: Checkpoint, last: LastChange, use: LockUse): Promise<void> {
    const { end, seal } = last.good.place;
    const read = () => this.reader.journal.file!.read(0, end).toString();
    const lines = end <= MOST_KEPT && seal !== '' ? unlessRefused(read) : undefined;
    await this.#replace(checkpoint, last, use);
    if (lines !== undefined) unlessRefused(() => this.folder.replace(EARLIER_FILE, lines));
  }

  /**
   * Updates the copy from a good state at the first transaction. Ignores errors, because the copy
   * is not needed.
   */
  mendCopyOnce({ place }: GoodState): void {
    if (this.#hasMended) return;
    this.#hasMended = true;
    unlessRefused(() => {
      const version = this.folder.version(COPY_FILE);
      if (version !== undefined && sizeOf(version) === place.end) return;
      const text = this.folder.read(STATE_FILE)?.toString('utf8', 0, place.end);
      if (text === undefined) return;
      quarantineFolder(this.folder, COPY_FILE);
      this.folder.replace(COPY_FILE, text);
    });
  }

  async #replaceState(bytes: Buffer, generation: number, { lock, isLast = false }: LockUse): Promise<string> {
    const stamp = generation % 1_000_000_000;
    const replace = () =>
      this.folder.replaceDurably(STATE_FILE, COPY_FILE, bytes, stamp, lock, isLast, generation);
    try {
      return await replace();
    } catch (error) {
      if (!(error instanceof NumalignError) || error.errnoName !== 'EISDIR') throw error;
      // A folder has one of the names that a commit uses.
      for (const name of [`${COPY_FILE}.new`, `${STATE_FILE}.new`]) quarantineFolder(this.folder, name);
      return await replace();
    }
  }

  /**
   * Recovers the state and writes both files. Returns undefined if nothing is left of it. `rejoin`:
   * opens the folders inside that are there now, and throws to end the wait for owners.
   */
  async recover(found: FoundState, lock: NativeLock, rejoin: () => void): Promise<Checkpoint | undefined> {
    const reader = this.reader;
    const clues = await this.#cluesOf(found, rejoin);
    if (isUnused(clues)) {
      reader.journal.raise(clues.highest);
      return undefined;
    }
    const view = reader.view(clues);
    if (view?.refusal) return view;
    const files = explaining(this.path, () => [
      ...quarantine(this.folder, STATE_FILE, clues.found),
      ...quarantine(this.folder, COPY_FILE, clues.previous),
    ]);
    // Without a good generation, processes may have read higher ones than any that is left.
    reader.journal.raise(Math.max(generationAfter(clues), clues.base ? 0 : Date.now()));
    if (view) {
      if (clues.base && !reader.isOfThisBoot(clues.base) && reader.isOfThisBoot(view))
        await archive(this.folder, clues.base);
      const { bootId, assignments: next } = view;
      await this.commit({ bootId, before: undefined, next, lock });
    }
    const checkpoint = view && reader.lastRead;
    this.#report(this.#recoveryMessage(clues, checkpoint?.assignments), files, checkpoint?.assignments);
    return checkpoint;
  }

  /** Puts aside what is in owners/ but was written by no owner, and reports it. */
  putStraysAside(owners: NativeFolder, names: readonly string[], { assignments }: Checkpoint): void {
    const files = names.flatMap((name) => unlessRefused(() => putAside(this.folder, name, owners)) ?? []);
    if (files.length === 0) return;
    const what = files.length === 1 ? names[0] : `${names[0]} and ${files.length - 1} more`;
    const message = `${this.path}/owners had ${what}, which no owner wrote and none holds; numalign put it aside`;
    this.#report(message, files, assignments);
  }

  // Gives the owners time to write what they hold.
  async #cluesOf(found: FoundState, rejoin: () => void): Promise<Clues> {
    // Owners write into the folders that are there now.
    const gather = () => {
      rejoin();
      return explaining(this.path, () => this.reader.gather(found));
    };
    const end = process.uptime() + LOST_OWNER_S;
    // All processes may have been stopped meanwhile, with this one.
    const isWorthWaiting = ({ owners: { unknown } }: Clues, reads: number) =>
      unknown.some(
        (owner) =>
          reads < OWNER_READS || (mayWrite(owner) && (reads < LOST_OWNER_READS || process.uptime() < end)),
      );
    const mayWrite = ({ uuid, isFileLost }: UnknownOwner) => isFileLost && !this.#silent.includes(uuid);
    let clues = gather();
    for (let reads = 1; isWorthWaiting(clues, reads); reads++) {
      await pause(OWNER_READ_PAUSE_MS);
      clues = gather();
    }
    this.#silent = clues.owners.unknown.map(({ uuid }) => uuid);
    return clues;
  }

  #recoveryMessage({ found, base }: Clues, state: Assignments | undefined): string {
    const why = found.kind === 'damaged' ? found.why : `there was no ${STATE_FILE}`;
    const from = base ? `generation ${base.generation} and ` : '';
    const count = state?.pods.length ?? 0;
    const grants = `${count} grant${count === 1 ? '' : 's'}`;
    return `the state in ${this.path} was damaged (${why}); numalign recovered it from ${from}the files of living owners, with ${grants}`;
  }

  #report(message: string, quarantined: readonly string[], state: Assignments | undefined): void {
    const { highest: generation } = this.reader.journal;
    const kept = (state?.pods ?? []).map(({ uid }) => uid);
    this.recoveries.push(Object.freeze({ code: 'STATE_RECOVERED', message, quarantined, generation, kept }));
  }
}
