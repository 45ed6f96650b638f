// Actors: processes that run functions sent to them; see actor.mjs.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const ACTOR = fileURLToPath(new URL('actor.mjs', import.meta.url));

export class Actor {
  /** `options`: for the fork. */
  constructor(options = {}) {
    this.process = fork(ACTOR, { execArgv: [], ...options });
    this.process.setMaxListeners(0);
  }

  get pid() {
    return this.process.pid;
  }

  /** Has it call a function, which sees only its arguments; returns `{ value }` or `{ error }`. */
  async ask(action, ...args) {
    // It may have died.
    this.process.send({ code: String(action), args }, () => {});
    const [answer] = await Promise.race([
      once(this.process, 'message'),
      once(this.process, 'exit').then(() => [{ error: { message: 'the process has ended' } }]),
    ]);
    return answer;
  }

  async do(action, ...args) {
    const { value, error } = await this.ask(action, ...args);
    if (error) throw new Error(`${error.code}: ${error.message}`);
    return value;
  }

  async refused(action, ...args) {
    const { error } = await this.ask(action, ...args);
    assert.ok(error, 'no error came');
    return error;
  }

  open(options) {
    return this.do(async ({ openManager }, mine, given) => {
      mine.manager = await openManager(given);
    }, options);
  }

  acquire(options, name = 'a') {
    return this.do(
      async (_, mine, given, key) => {
        mine.grants[key] = await mine.manager.acquire(given);
        return { ...mine.grants[key].toJSON(), target: mine.manager.pods?.() };
      },
      options,
      name,
    );
  }

  /** A method of a grant. */
  grant(method, options, name = 'a') {
    return this.do(
      async (_, mine, key, called, given) =>
        await mine.grants[key][called](...(given == null ? [] : [given])),
      name,
      method,
      options,
    );
  }

  get(property, name = 'a') {
    return this.do((_, mine, key, asked) => mine.grants[key][asked], name, property);
  }

  get hasEnded() {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  /** True if it does so by itself. */
  async endsWithin(ms) {
    if (this.hasEnded) return true;
    await once(this.process, 'exit', { signal: AbortSignal.timeout(ms) }).catch(() => {});
    return this.hasEnded;
  }

  async kill() {
    if (this.hasEnded) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }
}
