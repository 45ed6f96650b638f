// Ends a run in which one case takes too long, and names the case. It has a thread of its own: if
// the package loops without end, nothing else gets a turn.
import { Worker } from 'node:worker_threads';

/**
 * Answers what is to be called at the beginning of every case. The program may end with no further
 * word.
 */
export function watch(seconds: number): (what: string) => void {
  const worker = new Worker(new URL('./watchdog-thread.js', import.meta.url), {
    workerData: { seconds },
    execArgv: [],
  });
  worker.unref();
  return (what) => worker.postMessage(what);
}
