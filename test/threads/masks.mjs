// The law of masks, as a property: every thread has the same mask after grants as before, whatever
// was done with them. On this machine by masks.test.ts, on virtual machines by
// test/vm/guest/masks.test.mjs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';

const PROGRAM = fileURLToPath(new URL('masks-program.mjs', import.meta.url));

/**
 * One run of the program, for many sequences; the first failure ends it, because the masks have
 * changed.
 */
export class MaskProgram {
  #home;
  #process;
  #answers;

  /** `home`: the folder of a cgroup below the root that it is to run in, and registers. */
  constructor(home = '') {
    this.#home = home;
  }

  #start() {
    this.#process = spawn(process.execPath, [PROGRAM, this.#home], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** What was wrong, in words. */
  async run(sequence) {
    if (!this.#process) this.#start();
    this.#process.stdin.write(`${JSON.stringify(sequence)}\n`);
    const { value, done } = await this.#answers.next();
    const wrong = done ? ['the process has ended'] : JSON.parse(value);
    if (wrong.length > 0) await this.end();
    return wrong;
  }

  /** Returns once it has ended. */
  async end() {
    const ended = this.#process;
    this.#process = undefined;
    if (!ended || ended.exitCode !== null || ended.signalCode !== null) return;
    ended.kill('SIGKILL');
    await once(ended, 'exit');
  }
}

/** Operations of the program: `lists`: masks that threads choose; `sizes`: of grants. */
export function sequences(lists, sizes) {
  const at = fc.constantFrom(0, 1);
  const who = fc.nat(4);
  const list = fc.constantFrom(...lists);
  const size = fc.constantFrom(...sizes);
  const replace = fc.boolean();
  const step = fc.oneof(
    { weight: 2, arbitrary: fc.tuple(fc.constant('acquire'), at, size) },
    fc.tuple(fc.constant('pin'), at, fc.oneof(fc.constant('process'), who), replace),
    fc.tuple(fc.constant('unpin'), at),
    fc.tuple(fc.constant('spawn'), at),
    fc.tuple(fc.constant('worker'), at),
    fc.constant(['endWorker']),
    fc.tuple(fc.constant('placeThreads'), at, fc.boolean(), replace),
    fc.tuple(fc.constant('prewarmPool'), at, replace),
    fc.tuple(fc.constant('schedule'), at, who),
    fc.tuple(fc.constant('resize'), at, size),
    fc.tuple(fc.constant('transfer'), at),
    { weight: 2, arbitrary: fc.tuple(fc.constant('release'), at) },
    fc.tuple(fc.constant('choose'), who, list),
    fc.constant(['reconcile']),
  );
  return fc.record({
    chosen: fc.dictionary(fc.constantFrom('0', '1', '2'), list, { maxKeys: 3 }),
    // Most of what can be done is done on a grant.
    steps: fc
      .tuple(size, fc.array(step, { maxLength: 10 }))
      .map(([first, rest]) => [['acquire', 0, first], ...rest]),
  });
}
