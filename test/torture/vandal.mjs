// A third party in a state folder that is in use: it puts back an older state or folder and removes
// files, like an administrator by mistake. Living processes keep what they hold.
import { copyFileSync, cpSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeHighest } from './state-file.mjs';

const STATE = 'state.json';
const BACKUPS = 8;
// All of the folder that grants depend on.
const ENTRIES = [STATE, 'state.copy.json', 'lock', 'owners'];

export class Vandal {
  #stateDir;
  #random;
  #actions;
  /** Earlier copies of state.json. */
  #backups = [];

  /**
   * `canRemove`: also files that only living processes can write again; `isWhole`: the folder has
   * more than numalign's own files, and stays.
   */
  constructor(stateDir, random, canRemove, isWhole = false) {
    this.#stateDir = stateDir;
    this.#random = random;
    const owners = { owners: 2, backUp: 2, restore: 2 };
    const folder = { contents: 1, folder: 1, away: 1 };
    this.#actions = { putBack: 4, forget: 1, ...(canRemove && owners), ...(canRemove && !isWhole && folder) };
  }

  /** Returns what it has done. */
  act() {
    const action = this.#random.weighted(this.#actions);
    try {
      this[action]();
    } catch (error) {
      // Other processes are at work there too.
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
    }
    return action;
  }

  /** An older copy; as a new file, or written over the current one. */
  putBack() {
    const path = join(this.#stateDir, STATE);
    const bytes = this.#older(readFileSync(path));
    if (this.#random.chance(2)) {
      const copy = join(this.#stateDir, 'copy');
      // With its owner and mode.
      copyFileSync(path, copy);
      writeFileSync(copy, bytes);
      renameSync(copy, path);
    } else {
      writeFileSync(path, bytes);
    }
    this.#backups.push(bytes);
    if (this.#random.chance(3)) this.forget();
  }

  // Without its last lines, from some commits ago, or cut in the middle of a line.
  #older(bytes) {
    this.#backups.push(bytes);
    if (this.#backups.length > BACKUPS) this.#backups.splice(this.#random.below(BACKUPS), 1);
    const what = this.#random.weighted({ line: 3, lines: 2, backup: 2, middle: 2 });
    if (what === 'backup') return this.#random.pick(this.#backups);
    const ends = Array.from(bytes.toString('latin1').matchAll(/\n/g), ({ index }) => index + 1);
    // The head and the whole state are the first lines.
    const lines = Math.max(0, ends.length - 2);
    // An empty file, if a process died before it wrote any of it, stays one.
    if (what === 'middle' || lines === 0)
      return bytes.subarray(0, this.#random.below(Math.max(bytes.length, 1)));
    const cut = what === 'line' ? 1 : 1 + this.#random.below(Math.min(lines, 20));
    return bytes.subarray(0, ends[ends.length - 1 - cut]);
  }

  /** The evidence that a state is not the last. */
  forget() {
    if (this.#random.chance(2)) writeHighest(this.#stateDir);
    else rmSync(join(this.#stateDir, 'state.copy.json'), { force: true });
  }

  owners() {
    const owners = join(this.#stateDir, 'owners');
    for (const name of readdirSync(owners)) rmSync(join(owners, name));
  }

  backUp() {
    this.#copyAll(this.#stateDir, this.#backup);
  }

  /** As it was at the last {@link backUp}, in new files. */
  restore() {
    this.#copyAll(this.#backup, this.#stateDir);
  }

  get #backup() {
    return `${this.#stateDir}.backup`;
  }

  #copyAll(from, to) {
    // Without a backup nothing is removed.
    const there = readdirSync(from);
    for (const name of ENTRIES) {
      rmSync(join(to, name), { recursive: true, force: true });
      if (there.includes(name)) cpSync(join(from, name), join(to, name), { recursive: true });
    }
  }

  contents() {
    for (const name of readdirSync(this.#stateDir)) rmSync(join(this.#stateDir, name), { recursive: true });
  }

  folder() {
    rmSync(this.#stateDir, { recursive: true });
  }

  away() {
    const away = `${this.#stateDir}.away`;
    rmSync(away, { recursive: true, force: true });
    renameSync(this.#stateDir, away);
  }
}
