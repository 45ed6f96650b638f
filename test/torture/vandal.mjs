// A third party in a state folder that is in use: it puts back an older state and removes files, as
// an administrator who errs. What living processes hold they go on to hold.
import { copyFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export class Vandal {
  #stateDir;
  #random;
  #actions;

  /** `canRemove`: also what only living processes can write again. */
  constructor(stateDir, random, canRemove) {
    this.#stateDir = stateDir;
    this.#random = random;
    this.#actions = canRemove ? { putBack: 4, owners: 2, contents: 1, folder: 1, away: 1 } : { putBack: 1 };
  }

  /** Answers what it has done. */
  act() {
    const action = this.#random.weighted(this.#actions);
    try {
      this[action]();
    } catch (error) {
      // Others are at work there too.
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error;
    }
    return action;
  }

  putBack() {
    const copy = join(this.#stateDir, 'copy');
    copyFileSync(join(this.#stateDir, 'state.copy.json'), copy);
    renameSync(copy, join(this.#stateDir, 'state.json'));
  }

  owners() {
    const owners = join(this.#stateDir, 'owners');
    for (const name of readdirSync(owners)) rmSync(join(owners, name));
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
