// The thread of watchdog.ts.
import { writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

const { seconds } = workerData as { readonly seconds: number };
let timer: NodeJS.Timeout | undefined;

parentPort!.on('message', (what: string) => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    // Standard error itself: the stream would hand it to the thread that does not answer.
    writeSync(2, `${what}: no answer after ${seconds} seconds\n`);
    // A signal that the package cannot handle: its threads may be busy for ever.
    process.kill(process.pid, 'SIGKILL');
  }, seconds * 1000);
});
