// Another process that takes grants over: test/support/agent.mjs, one for all sequences of a
// program.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const AGENT = fileURLToPath(new URL('../support/agent.mjs', import.meta.url));

export class Successor {
  #agent = spawn(process.execPath, [AGENT], { stdio: ['pipe', 'pipe', 'inherit'] });
  #answers = createInterface({ input: this.#agent.stdout })[Symbol.asyncIterator]();
  #isOpen = false;

  async #tell(verb, argument) {
    this.#agent.stdin.write(`${JSON.stringify([verb, argument])}\n`);
    const { value, error } = JSON.parse((await this.#answers.next()).value);
    if (error) throw new Error(`${verb}: ${error.code} ${error.message}`);
    return value;
  }

  async open(options) {
    if (!this.#isOpen) await this.#tell('open', options);
    this.#isOpen = true;
  }

  takeOver(token) {
    return this.#tell('takeOver', { token });
  }

  release(uid) {
    return this.#tell('release', { uid });
  }

  /** Closes its manager. */
  async reset() {
    if (this.#isOpen) await this.#tell('close');
    this.#isOpen = false;
  }
}
