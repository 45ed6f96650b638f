// A pool of Workers with one CPU each, all on one NUMA node: near each other's memory, and without
// other threads between them.
//   WORKERS=4 node examples/worker-pool.mjs
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
import { once } from 'node:events';
import { isMainThread, parentPort } from 'node:worker_threads';
import { openManager } from 'numalign';
import { affinity } from 'numalign/diagnostics';

const JOBS = Array.from({ length: 8 }, (_, i) => 10_000 * (i + 1));

function countPrimes(limit) {
  let count = 0;
  for (let n = 2; n < limit; n++) {
    let divisor = 2;
    while (divisor * divisor <= n && n % divisor !== 0) divisor++;
    if (divisor * divisor > n) count++;
  }
  return count;
}

async function main({ WORKERS, STATE_DIR }) {
  const manager = await openManager(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR });
  // At least one CPU stays shared for everything else. On a machine with one CPU, acquire explains
  // why there is none.
  const cpu = Number(WORKERS ?? Math.max(1, Math.min(4, manager.freeCpus().size - 1)));
  await manager.use({ name: 'worker-pool', cpu, policy: 'single-numa-node' }, async (grant) => {
    // Pin the whole process first: cgroup v2 moves only whole processes. This thread only
    // distributes jobs.
    grant.pin();
    const workers = [...grant.cpus].map((id) => grant.worker(new URL(import.meta.url), { cpus: `${id}` }));
    console.log(
      `${workers.length} ${workers.length === 1 ? 'worker on CPU' : 'workers on CPUs'} ${grant.cpus} of NUMA node ${grant.numaNodes}, enforcement "${grant.enforcement}"`,
    );

    const jobs = JOBS.values();
    async function serve(worker) {
      for (const limit of jobs) {
        worker.postMessage(limit);
        const [{ primes, cpus }] = await once(worker, 'message');
        console.log(`CPU ${cpus}: ${primes} primes below ${limit}`);
      }
      await worker.terminate();
    }
    await Promise.all(workers.map(serve));
  });
  manager.close();
}

if (isMainThread) await main(process.env);
else
  parentPort.on('message', (limit) =>
    parentPort.postMessage({ primes: countPrimes(limit), cpus: `${affinity()}` }),
  );
