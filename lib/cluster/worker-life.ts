// WorkerLife: how a worker begins and ends.
import type { Worker } from 'node:cluster';
import { NumalignError } from '../base/errors.js';

export class WorkerLife {
  readonly worker: Worker;
  /** Why it was never there; undefined where it is. */
  readonly failure: Promise<Error> | undefined;
  readonly #startedMs = performance.now();
  readonly #seen = new Set<string>();
  // By kill().
  #isEnded = false;

  /**
   * REQUIRES: a worker that was forked just now. `ending`: called before its end is emitted;
   * `ended`: after that.
   */
  constructor(worker: Worker, ending: () => void, ended: () => void) {
    this.worker = worker;
    for (const event of ['online', 'listening']) worker.once(event, () => this.#seen.add(event));
    const { destroy, process: child } = worker;
    // kill() calls it.
    worker.destroy = (signal) => {
      this.#isEnded = true;
      destroy.call(worker, signal);
    };
    // The event comes before a caller of fork() can listen, and would end this process.
    if (child.pid === undefined) this.failure = new Promise((resolve) => worker.once('error', resolve));
    else child.prependOnceListener('exit', ending).once('exit', () => process.nextTick(ended));
  }

  /** Whether it has listened. */
  get listens(): boolean {
    return this.#seen.has('listening');
  }

  /** For how many milliseconds it has been there. */
  get ageMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** Whether it has ended as it, or this process, wanted: it does not live again. */
  get hasEndedByChoice(): boolean {
    const { exitedAfterDisconnect, process } = this.worker;
    return exitedAfterDisconnect || this.#isEnded || process.exitCode === 0;
  }

  /**
   * Resolves once it serves: once it listens, or where it is not expected to, runs.
   * @throws ERR_WORKER_START where it ends before, or does neither within the time
   */
  untilReady(listens: boolean, startDeadlineMs: number): Promise<void> {
    const { worker } = this;
    const event = listens ? 'listening' : 'online';
    return new Promise((resolve, reject) => {
      if (this.#seen.has(event)) return resolve();
      const settle = (settled: () => void) => {
        clearTimeout(timer);
        worker.off(event, ready).off('exit', exited);
        settled();
      };
      const fail = (why: string, details: object) =>
        settle(() => reject(notReady(worker, `${why} before it was ${event}`, details)));
      const ready = () => settle(resolve);
      const exited = (exitCode: number | null, signal: string | null) =>
        fail(`has ended (${signal ?? `exit code ${exitCode}`})`, { exitCode, signal });
      const timer = setTimeout(fail, startDeadlineMs, `has run for ${startDeadlineMs} ms`, {
        startDeadlineMs,
      });
      worker.once(event, ready).once('exit', exited);
      if (worker.isDead()) exited(worker.process.exitCode, worker.process.signalCode);
    });
  }

  /** It is told to end. */
  disconnect(): void {
    this.ignoreErrors();
    if (this.worker.isConnected()) this.worker.disconnect();
  }

  /** Where it has died unnoticed, nothing can be sent to it: its error would end this process. */
  ignoreErrors(): void {
    this.worker.off('error', ignore).on('error', ignore);
  }

  /**
   * Resolves once it has ended: it is disconnected, and killed after the time. Answers whether it had
   * to be.
   */
  end(deadlineMs: number): Promise<boolean> {
    const { worker } = this;
    const { process } = worker;
    return new Promise((resolve) => {
      if (process.pid === undefined || worker.isDead()) return resolve(false);
      let isKilled = false;
      const kill = () => {
        isKilled = process.kill('SIGKILL');
      };
      const timer = setTimeout(kill, deadlineMs);
      process.once('exit', () => {
        clearTimeout(timer);
        resolve(isKilled);
      });
      this.disconnect();
    });
  }
}

const ignore = () => {};

function notReady({ id, process: { pid } }: Worker, what: string, details: object): NumalignError {
  const message = `worker ${id} (process ${pid}) ${what}: the restart ends here, and the workers that were not restarted go on`;
  return new NumalignError('ERR_WORKER_START', message, { value: id, pid, ...details });
}
