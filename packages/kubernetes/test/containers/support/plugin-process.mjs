// PluginProcess: controls plugin.mjs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('plugin.mjs', import.meta.url));
// An emulated machine that is busy takes half of it to start a process.
const PATIENCE_MS = 120_000;

export class PluginProcess {
  /** Its output so far. */
  lines = [];
  /** Resolves with the signal or exit code that ended it. */
  ended;
  #child;
  #waiting = new Set();

  constructor(options) {
    this.#child = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.ended = once(this.#child, 'close').then(([code, signal]) => signal ?? code);
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.lines.push(line);
      for (const look of [...this.#waiting]) look();
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** How often it has handled a call. */
  count(call) {
    return this.lines.filter((line) => line === call).length;
  }

  /** Waits until it has handled a call this often, or has ended. */
  async reach(call, times = 1) {
    let look;
    const reached = new Promise((resolve) => {
      look = () => this.count(call) >= times && resolve();
      this.#waiting.add(look);
      look();
    });
    const deadline = AbortSignal.timeout(PATIENCE_MS);
    const late = once(deadline, 'abort').then(() => {
      throw new Error(`no ${call} handled ${times} times:\n${this.lines.join('\n')}`);
    });
    late.catch(() => {});
    try {
      await Promise.race([reached, this.ended, late]);
    } finally {
      this.#waiting.delete(look);
    }
  }

  /** It kills itself before or after (`when`) it handles the next call of this name. */
  async arm(call, when) {
    this.#child.stdin.write(`${JSON.stringify({ call, when })}\n`);
    await this.reach('armed');
  }

  signal(signal) {
    this.#child.kill(signal);
  }

  async kill() {
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
