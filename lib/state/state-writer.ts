// StateWriter: how the next state becomes the one in force, and how a damaged one is put together
// again. Everything here REQUIRES the lock.
import { setTimeout as pause } from 'node:timers/promises';
import type { Assignments } from '../account/assignments.js';
import { NumalignError } from '../base/errors.js';
import type { NativeFolder, NativeLock } from '../base/native-files.js';
import { type Checkpoint, encodeCheckpoint } from './files/checkpoint.js';
import { checkHoldings } from './files/holdings-check.js';
import { archive, quarantine } from './files/put-aside.js';
import { type FoundState, findState, PREVIOUS_FILE, STATE_FILE } from './files/state-files.js';
import { explain, explaining } from './folder/folder-error.js';
import type { Owners } from './owners/owners.js';
import { type Clues, generationAfter, isUnused } from './owners/recovery.js';
import { HIGHEST, type StateReader } from './state-reader.js';
import type { StateRecovered } from './store.js';

// An owner may be writing its file outside of any transaction.
const OWNER_READS = 5;
// The kernel has told an owner that its file was removed; its event loop may be busy.
const MISSING_OWNER_READS = 300;
const OWNER_READ_PAUSE_MS = 10;

export class StateWriter {
  /** What was damaged and put together again here, the latest last. */
  readonly recoveries: StateRecovered[] = [];
  readonly #path: string;
  readonly #folder: NativeFolder;
  readonly #owners: Owners;
  readonly #reader: StateReader;

  constructor(path: string, folder: NativeFolder, owners: Owners, reader: StateReader) {
    this.#path = path;
    this.#folder = folder;
    this.#owners = owners;
    this.#reader = reader;
  }

  /** `isLast`: others may go on as soon as it is durable. */
  async commit(
    bootId: string,
    before: Assignments | undefined,
    next: Assignments,
    lock: NativeLock,
    isLast = false,
  ): Promise<void> {
    // A mistake of ours must not become the record.
    checkHoldings(next);
    const generation = this.#reader.generation + 1;
    const checkpoint = { generation, bootId, writtenAt: new Date().toISOString(), assignments: next };
    const bytes = Buffer.from(encodeCheckpoint(checkpoint));
    const settle =
      bootId === this.#reader.bootId
        ? explaining(this.#path, () => this.#owners.claim(generation - 1, before, next))
        : undefined;
    let version: string | undefined;
    try {
      version = await this.#replaceState(bytes, generation, lock, isLast);
    } catch (error) {
      // The new file may be in place although syncing the folder failed: then everybody sees it,
      // and it counts.
      if (!this.#reader.finds(bytes)) {
        settle?.(false);
        throw explain(this.#path, error);
      }
    }
    settle?.(true);
    this.#reader.noteCommitted(checkpoint, bytes, version);
    if (isLast) return;
    // What is decided next is decided on it.
    const found = this.#reader.load();
    if (settle && found.kind === 'good') this.#owners.follow(found.checkpoint);
  }

  async #replaceState(bytes: Buffer, generation: number, lock: NativeLock, isLast: boolean): Promise<string> {
    const stamp = generation % 1_000_000_000;
    const replace = () =>
      this.#folder.replaceDurably(
        STATE_FILE,
        PREVIOUS_FILE,
        bytes,
        stamp,
        lock,
        isLast,
        HIGHEST,
        `${generation}`,
      );
    try {
      return await replace();
    } catch (error) {
      if (!(error instanceof NumalignError) || error.errnoName !== 'EISDIR') throw error;
      // A folder under one of the names that a commit uses.
      for (const name of [PREVIOUS_FILE, `${PREVIOUS_FILE}.new`, `${STATE_FILE}.new`]) {
        const found = findState(this.#folder, name);
        if (found.kind === 'damaged' && found.isFolder) quarantine(this.#folder, name, found);
      }
      return await replace();
    }
  }

  /**
   * Puts the state together again and writes it twice, so that the generation before is a good one
   * too. Undefined where nothing is left of it.
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
      ...quarantine(this.#folder, PREVIOUS_FILE, clues.previous),
    ]);
    // Where no good generation is known, higher ones may have been seen than any that is left.
    reader.raise(Math.max(generationAfter(clues), clues.base ? 0 : Date.now()));
    if (view) {
      if (clues.base && !reader.isOfThisBoot(clues.base) && reader.isOfThisBoot(view))
        await archive(this.#folder, clues.base);
      await this.commit(view.bootId, undefined, view.assignments, lock);
      await this.commit(view.bootId, view.assignments, view.assignments, lock);
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
