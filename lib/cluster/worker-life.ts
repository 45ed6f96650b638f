// WorkerLife: the start and the end of a worker.
import type { Worker } from 'node:cluster';
import { NumalignError } from '../base/errors.js';

export class WorkerLife {
  /** Why it never started; undefined if it did. */
  readonly failure: Promise<Error> | undefined;
  readonly #startedMs = performance.now();
  readonly #events = new Set<string>();
  // Ended by kill().
  #isEnded = false;

  /**
   * REQUIRES: a worker that was just forked. `ending` is called before its end is emitted, `onEnd`
   * afterwards.
   */
  constructor(
    readonly worker: Worker,
    ending: () => void,
    onEnd: () => void,
  ) {
    // All are prepended: Node calls no listener after one of the user's that throws.
    for (const event of ['online', 'listening'])
      worker.prependOnceListener(event, () => this.#events.add(event));
    const { destroy, process: child } = worker;
    // kill() calls destroy().
    worker.destroy = (signal) => {
      this.#isEnded = true;
      destroy.call(worker, signal);
    };
    // The event comes before a caller of fork() can listen, and would end this process.
    if (child.pid === undefined) this.failure = new Promise((resolve) => worker.once('error', resolve));
    else
      child.prependOnceListener('exit', () => {
        ending();
        process.nextTick(onEnd);
      });
  }

  /** Whether it has listened. */
  get listens(): boolean {
    return this.#events.has('listening');
  }

  /** The milliseconds since its start. */
  get ageMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** Whether it, or this process, ended it on purpose: it is not forked again. */
  get hasEndedByChoice(): boolean {
    const { exitedAfterDisconnect, process } = this.worker;
    return exitedAfterDisconnect || this.#isEnded || process.exitCode === 0;
  }

  /**
   * Resolves once it serves: once it listens, or if it need not listen, once it is online.
   * @throws ERR_WORKER_START if it ends first, or does not serve in time
   */
  untilReady(listens: boolean, startDeadlineMs: number): Promise<void> {
    const { worker } = this;
    const event = listens ? 'listening' : 'online';
    return new Promise((resolve, reject) => {
      if (this.#events.has(event)) return resolve();
      const settle = (callback: () => void) => {
        clearTimeout(timer);
        worker.off(event, ready).off('exit', exited);
        callback();
      };
      const fail = (why: string, details: object) =>
        settle(() => reject(notReady(worker, `${why} before it was ${event}`, details)));
      const ready = () => settle(resolve);
      const exited = (exitCode: number | null, signal: string | null) =>
        fail(`has ended (${signal ?? `exit code ${exitCode}`})`, { exitCode, signal });
      const timer = setTimeout(fail, startDeadlineMs, `has run for ${startDeadlineMs} ms`, {
        startDeadlineMs,
      });
      worker.prependOnceListener(event, ready).prependOnceListener('exit', exited);
      if (worker.isDead()) exited(worker.process.exitCode, worker.process.signalCode);
    });
  }

  /** Tells it to end. */
  disconnect(): void {
    this.ignoreErrors();
    if (this.worker.isConnected()) this.worker.disconnect();
  }

  /** Nothing can be sent to a worker that has died unnoticed: the error would end this process. */
  ignoreErrors(): void {
    this.worker.off('error', ignore).on('error', ignore);
  }

  /**
   * Disconnects it, kills it after the deadline, and resolves once it has ended. Returns whether it
   * had to be killed.
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
      process.prependOnceListener('exit', () => {
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
