// How a worker begins and ends.
import type { Worker } from 'node:cluster';
import { NumalignError } from '../base/errors.js';

/** Whether a worker has ended as it, or this process, wanted: it does not live again. */
export function hasEndedByChoice({ exitedAfterDisconnect, process }: Worker): boolean {
  return exitedAfterDisconnect || process.killed || process.exitCode === 0;
}

/**
 * Resolves once a worker serves: once it listens, or where it is not expected to, runs.
 * @throws ERR_WORKER_START where it ends before, or does neither within the time
 */
export function untilReady(worker: Worker, listens: boolean, deadlineMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const event = listens ? 'listening' : 'online';
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
    const timer = setTimeout(fail, deadlineMs, `has run for ${deadlineMs} ms`, { deadlineMs });
    worker.once(event, ready).once('exit', exited);
  });
}

function notReady({ id, process: { pid } }: Worker, what: string, details: object): NumalignError {
  const message = `worker ${id} (process ${pid}) ${what}: the restart ends here, and the workers that were not restarted go on`;
  return new NumalignError('ERR_WORKER_START', message, { value: id, pid, ...details });
}

/**
 * Resolves once a worker has ended: it is disconnected, and killed after the time. Answers whether it
 * had to be.
 */
export function endWorker(worker: Worker, deadlineMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const { process } = worker;
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
    if (worker.isConnected()) worker.disconnect();
  });
}
