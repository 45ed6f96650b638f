// A Node program with all kinds of threads at work: a busy main thread, jobs of the pool, two
// Workers, forced garbage collections. Run with --expose-gc and JSON on the command line: {
// stateDir, cpu, isolation, manager, threads, fifo }. Prints one line of JSON when its threads
// are placed, and works until its input ends.
import { pbkdf2 } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { threads } from '../../dist/entries/diagnostics.js';
import { openManager } from '../../dist/index.js';

const {
  stateDir,
  cpu,
  isolation,
  manager: managerOptions,
  threads: placement,
  fifo,
} = JSON.parse(process.argv[2]);
const manager = await openManager({ stateDir, ...managerOptions });
const grant = await manager.acquire({ cpu, isolation });

// Garbage in JavaScript, of which V8's helpers get a share.
const WORK = `
  const makeGarbage = () => {
    let list = [];
    for (let i = 0; i < 20000; i++) list.push({ i, text: 'x' + i });
    return list.length;
  };`;
const makeGarbage = new Function(`${WORK} return makeGarbage;`)();
const startWorker = () =>
  grant.worker(
    `${WORK}
     const { parentPort } = require('node:worker_threads');
     const { readlinkSync } = require('node:fs');
     parentPort.postMessage(Number(readlinkSync('/proc/thread-self').split('/').at(-1)));
     const work = () => { makeGarbage(); setImmediate(work); };
     work();`,
    { eval: true },
  );
const workers = [startWorker(), startWorker()];
const workerTids = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]));

// On a busy machine not every thread of the pool answers in time.
let placed = await grant.placeThreads(placement ?? {});
for (const end = Date.now() + 20_000; !placed.pool.guaranteed && Date.now() < end; ) {
  placed = await grant.placeThreads(placement ?? {});
}
const scheduling = fifo && grant.schedule({ policy: 'fifo', priority: fifo });
const tidsOf = ({ moved }) => moved.map(({ tid }) => tid);
const { main, workers: moved, pool, v8, others } = placed;

let isDone = false;
process.stdin.once('end', () => {
  isDone = true;
});
process.stdin.resume();
const masks = Object.fromEntries(threads().map(({ tid, cpus }) => [tid, String(cpus)]));
process.stdout.write(
  `${JSON.stringify({
    grant: String(grant.cpus),
    kinds: {
      main: tidsOf(main),
      workers: tidsOf(moved),
      pool: tidsOf(pool),
      v8: tidsOf(v8),
      others: tidsOf(others),
    },
    guaranteed: {
      all: placed.guaranteed,
      main: main.guaranteed,
      pool: pool.guaranteed,
      workers: moved.guaranteed,
    },
    workerTids,
    masks,
    scheduling,
  })}\n`,
);

let jobs = 0;
const hash = () => {
  if (isDone) return;
  jobs++;
  pbkdf2('secret', 'salt', 2_000, 32, 'sha512', hash);
};
for (let i = 0; i < 8; i++) hash();
for (let rounds = 0; !isDone; rounds++) {
  makeGarbage();
  if (rounds % 10 === 0) globalThis.gc();
  await turn();
}
for (const worker of workers) await worker.terminate();
await grant.release();
const left = threads().filter(({ cpus }) => cpus.isSubsetOf(grant.cpus));
process.stdout.write(`${JSON.stringify({ jobs, left: left.map(({ tid, role }) => [tid, role]) })}\n`);
manager.close();
