// A watchdog beside the event loop: it ends the process if the loop stands still.
import { writeSync } from 'node:fs';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

const BEAT = 100;

/** `limit`: milliseconds that the loop may stand still; `describe`: what is said then. */
export function startWatchdog(limit, description) {
  const beats = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL(import.meta.url), { workerData: { beats, limit, description } });
  worker.unref();
  const timer = setInterval(() => Atomics.add(beats, 0, 1), BEAT).unref();
  return {
    stop() {
      clearInterval(timer);
      return worker.terminate();
    },
  };
}

if (!isMainThread && workerData?.beats) {
  const { beats, limit, description } = workerData;
  let [last, since] = [-1, performance.now()];
  setInterval(() => {
    const now = Atomics.load(beats, 0);
    if (now !== last) [last, since] = [now, performance.now()];
    if (performance.now() - since < limit) return;
    writeSync(2, `the event loop stood still for ${limit} ms: ${description}\n`);
    process.kill(process.pid, 'SIGKILL');
  }, BEAT);
}
