// StateWriter: how the next state becomes the one in force, and how a damaged one is put together
// again. Everything here REQUIRES the lock.
import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { archive, quarantine } from './files/put-aside.js';
import {
  COPY_FILE,
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
import { prepareTexts } from './format/pod-text.js';
import { type SealedText, sealText } from './format/sealed-json.js';
import { changeText } from './format/state-change.js';
import { harmlessly } from './owners/owner-files.js';
import type { Owners } from './owners/owners.js';
import { type Clues, generationAfter, isUnused } from './owners/recovery.js';
import type { StateReader } from './state-reader.js';
import type { StateRecovered } from './store.js';

// By number: Node has no name for it.
const { ESTALE } = constants.errno;

// An owner may be writing its file outside of any transaction.
const OWNER_READS = 5;
// The kernel has told an owner that its file was removed; its event loop may be busy.
const MISSING_OWNER_READS = 300;
const OWNER_READ_PAUSE_MS = 10;

// Appended lines are written together again once they are as long as the whole state, and longer
// than this: so each byte is written again about once.
const LEAST_TO_COMPACT = 1 << 16;

// Pods that were read have no text yet. It is made in parts, between the turns of the event loop, and
// not for ever waited for.
const TEXTS_AT_ONCE = 32;
const MOST_WAITED = 2;

// A file of version 1 takes no lines.
const isDue = ({ end, snapshot, seal }: JournalPlace, times = 1) =>
  seal === '' || end - snapshot > times * Math.max(LEAST_TO_COMPACT, snapshot);

function quarantineFolder(folder: NativeFolder, name: string): void {
  const found = findState(folder, name);
  if (found.kind === 'damaged' && found.isFolder) quarantine(folder, name, found);
}

// Another file will do: this one is closed to us, removed or not the one that was read; or the
// kernel may have dropped what it could not write.
const isFileAtFault = ({ syscall, errno, errnoName }: NumalignError) =>
  syscall === 'fdatasync' ||
  (syscall === 'open' && (errno === ESTALE || /^E(ACCES|PERM|NOENT|LOOP|ISDIR|NXIO)$/.test(errnoName ?? '')));

/** What is in force, and the line that comes next. */
interface LastChange extends SealedText {
  readonly good: GoodState;
}

export class StateWriter {
  /** What was damaged and put together again here, the latest last. */
  readonly recoveries: StateRecovered[] = [];
  readonly #path: string;
  readonly #folder: NativeFolder;
  readonly #owners: Owners;
  readonly #reader: StateReader;
  // What the file has may be lost with the power.
  #isUnsynced = false;
  #hasMended = false;
  #isPreparing = false;

  constructor(path: string, folder: NativeFolder, owners: Owners, reader: StateReader) {
    this.#path = path;
    this.#folder = folder;
    this.#owners = owners;
    this.#reader = reader;
  }

  /** `before`: undefined where there is no state, or none that is good. `isLast`: others may go on as soon as it is durable. */
  async commit(
    bootId: string,
    before: Assignments | undefined,
    next: Assignments,
    lock: NativeLock,
    isLast = false,
  ): Promise<void> {
    // A mistake of ours must not become the record.
    checkHoldings(next);
    const reader = this.#reader;
    const generation = reader.generation + 1;
    const checkpoint = { generation, bootId, writtenAt: new Date().toISOString(), assignments: next };
    const settle =
      bootId === reader.bootId
        ? explaining(this.#path, () => this.#owners.claim(generation - 1, before, next))
        : undefined;
    try {
      await this.#write(checkpoint, lock, isLast, before === undefined);
    } catch (error) {
      // It may be in place although syncing it failed: then others have seen it, and it counts.
      if (!reader.finds(checkpoint)) {
        settle?.(false);
        throw explain(this.#path, error);
      }
      this.#isUnsynced = true;
      // Should it get lost, that is to be noticed.
      lock.setNumber(generation);
    }
    settle?.(true);
    reader.noteCommitted(checkpoint);
    if (isLast) return;
    // What is decided next is decided on it.
    const found = reader.load();
    if (settle && found.kind === 'good') this.#owners.follow(found.checkpoint);
  }

  async #write(checkpoint: Checkpoint, lock: NativeLock, isLast: boolean, isWhole: boolean): Promise<void> {
    const { journal } = this.#reader;
    const { good } = journal;
    const change = isWhole || !good ? undefined : changeText(good.checkpoint, checkpoint);
    if (!good || change === undefined) return this.#replace(checkpoint, undefined, lock, isLast);
    const sealed = sealText(change);
    if (this.#isUnsynced || (isDue(good.place) && this.#isPrepared(good)))
      return this.#replace(checkpoint, { good, ...sealed }, lock, isLast);
    try {
      journal.cutTail();
      const { line } = sealed;
      const at = good.place.end;
      const { generation } = checkpoint;
      const version = await journal.file!.append(at, line, this.#folder, lock, isLast, COPY_FILE, generation);
      journal.noteAppended(good, checkpoint, sealed, version);
    } catch (error) {
      if (!(error instanceof NumalignError) || !isFileAtFault(error)) throw error;
      await this.#replace(checkpoint, { good, ...sealed }, lock, isLast);
    }
  }

  // Whether the file can be written whole without a stop of the event loop, or has to be.
  #isPrepared({ place, checkpoint: { assignments } }: GoodState): boolean {
    if (isDue(place, MOST_WAITED) || !prepareTexts(assignments.pods, TEXTS_AT_ONCE)) return true;
    this.#prepareLater(assignments.pods);
    return false;
  }

  #prepareLater(pods: readonly PodAssignment[]): void {
    if (this.#isPreparing) return;
    this.#isPreparing = true;
    setImmediate(() => {
      this.#isPreparing = false;
      if (prepareTexts(pods, TEXTS_AT_ONCE)) this.#prepareLater(pods);
    }).unref();
  }

  // A new file in place of the one that is there. `last`: the checkpoint before, with which it then
  // begins, and the line of the change.
  async #replace(
    checkpoint: Checkpoint,
    last: LastChange | undefined,
    lock: NativeLock,
    isLast: boolean,
  ): Promise<void> {
    const known = this.#reader.journal.good;
    const { bytes, place } = last
      ? encodeJournal(last.good.checkpoint, last.good.place.seal || null, last)
      : encodeJournal(checkpoint, null);
    const version = await this.#replaceState(bytes, checkpoint.generation, lock, isLast);
    this.#isUnsynced = false;
    this.#reader.journal.noteReplaced(known, { kind: 'good', checkpoint, place }, version);
  }

  /** At first puts the copy in step with a state that is good. Not to have one is no reason to fail. */
  mendCopyOnce({ place }: GoodState): void {
    if (this.#hasMended) return;
    this.#hasMended = true;
    harmlessly(() => {
      const version = this.#folder.version(COPY_FILE);
      if (version !== undefined && sizeOf(version) === place.end) return;
      const text = this.#folder.read(STATE_FILE)?.toString('utf8', 0, place.end);
      if (text === undefined) return;
      quarantineFolder(this.#folder, COPY_FILE);
      this.#folder.replace(COPY_FILE, text);
    });
  }

  async #replaceState(bytes: Buffer, generation: number, lock: NativeLock, isLast: boolean): Promise<string> {
    const stamp = generation % 1_000_000_000;
    const replace = () =>
      this.#folder.replaceDurably(STATE_FILE, COPY_FILE, bytes, stamp, lock, isLast, generation);
    try {
      return await replace();
    } catch (error) {
      if (!(error instanceof NumalignError) || error.errnoName !== 'EISDIR') throw error;
      // A folder under one of the names that a commit uses.
      for (const name of [`${COPY_FILE}.new`, `${STATE_FILE}.new`]) quarantineFolder(this.#folder, name);
      return await replace();
    }
  }

  /**
   * Puts the state together again and writes it into both files. Undefined where nothing is left of
   * it.
   */
  async recover(found: FoundState, lock: NativeLock): Promise<Checkpoint | undefined> {
    const reader = this.#reader;
    const clues = await this.#cluesOf(found);
    if (isUnused(clues)) {
      reader.raise(clues.highest);
      return undefined;
    }
    const view = reader.view(clues);
    if (view?.refusal) return view;
    const quarantined = explaining(this.#path, () => [
      ...quarantine(this.#folder, STATE_FILE, clues.found),
      ...quarantine(this.#folder, COPY_FILE, clues.previous),
    ]);
    // Where no good generation is known, higher ones may have been seen than any that is left.
    reader.raise(Math.max(generationAfter(clues), clues.base ? 0 : Date.now()));
    if (view) {
      if (clues.base && !reader.isOfThisBoot(clues.base) && reader.isOfThisBoot(view))
        await archive(this.#folder, clues.base);
      await this.commit(view.bootId, undefined, view.assignments, lock);
    }
    const checkpoint = view && reader.known;
    const kept = (checkpoint?.assignments.pods ?? []).map(({ uid }) => uid);
    this.recoveries.push(this.#recovered(clues, quarantined, kept));
    return checkpoint;
  }

  // Once the owners have had time to say what they hold.
  async #cluesOf(found: FoundState): Promise<Clues> {
    const gather = () => explaining(this.#path, () => this.#reader.gather(found));
    const mayAnswer = ({ owners: { unknown } }: Clues, reads: number) =>
      unknown.some(({ isFileMissing }) => reads < (isFileMissing ? MISSING_OWNER_READS : OWNER_READS));
    let clues = gather();
    for (let reads = 1; mayAnswer(clues, reads); reads++) {
      await pause(OWNER_READ_PAUSE_MS);
      clues = gather();
    }
    return clues;
  }

  #recovered(
    { found, base }: Clues,
    quarantined: readonly string[],
    kept: readonly string[],
  ): StateRecovered {
    const why = found.kind === 'damaged' ? found.why : `there was no ${STATE_FILE}`;
    const from = base ? `generation ${base.generation} and ` : '';
    const grants = `${kept.length} grant${kept.length === 1 ? '' : 's'}`;
    const message = `the state in ${this.#path} was damaged (${why}) and has been put together again from ${from}the files of living owners, with ${grants}`;
    return Object.freeze({
      code: 'STATE_RECOVERED',
      message,
      quarantined,
      generation: this.#reader.generation,
      kept,
    });
  }
}
