// A supervisor of media workers: each process has its own CPU, where it is restarted if it dies.
//   WORKERS=4 node examples/child-processes.mjs
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { openManager } from 'numalign';

const { STATE_DIR, WORKERS } = process.env;
const PAUSE_MS = 100;

const manager = await openManager(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR });
// At least one CPU stays shared: this process runs there.
const count = Number(WORKERS ?? Math.max(1, Math.min(4, manager.freeCpus().size - 1)));
const running = new Set();
let isStopping = false;

function stop() {
  isStopping = true;
  for (const worker of running) worker.kill();
}
process.once('SIGTERM', stop);
process.once('SIGINT', stop);

async function supervise(name) {
  // The supervisor owns the grant, whatever happens to a worker.
  const grant = await manager.acquire({ cpu: 1, name });
  while (!isStopping) {
    // Other programs than JavaScript are started by grant.spawn, with the same options.
    const worker = grant.fork(new URL('media-worker.mjs', import.meta.url), [], { threadCounts: 'auto' });
    running.add(worker);
    worker.on('message', ({ cpus, threads }) => {
      console.log(`${name}: process ${worker.pid} on CPU ${cpus}, threads ${threads}`);
    });
    const [code, signal] = await once(worker, 'exit');
    running.delete(worker);
    console.log(`${name}: process ${worker.pid} has ended (${signal ?? code})`);
    if (!isStopping) await setTimeout(PAUSE_MS);
  }
  await grant.release();
}

await Promise.all(Array.from({ length: count }, (_, i) => supervise(`media-${i}`)));
manager.close();
