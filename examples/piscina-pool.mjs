// A piscina pool whose Workers each have a CPU from their first instruction.
//   npm install piscina
//   WORKERS=4 node examples/piscina-pool.mjs
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { openManager } from 'numalign';
import { affinity } from 'numalign/diagnostics';
import { Piscina } from 'piscina';

/** The job, in a Worker. */
export default function sumOfSquares(count) {
  let sum = 0;
  for (let n = 1; n <= count; n++) sum += n * n;
  return { sum, cpus: `${affinity()}` };
}

async function main({ WORKERS, STATE_DIR }) {
  const manager = await openManager(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR });
  const cpu = Number(WORKERS ?? Math.max(1, Math.min(4, manager.freeCpus().size - 1)));
  await manager.use({ name: 'piscina-pool', cpu }, async (grant) => {
    // Pin the whole process first: cgroup v2 moves only whole processes.
    grant.pin();
    const placement = await grant.placeWorkers({ oneToOne: true });
    const options = grant.poolOptions('piscina');
    const pool = new Piscina({ filename: fileURLToPath(import.meta.url), ...options });
    for (const { cpus, when } of placement.workers) console.log(`a Worker on CPU ${cpus}, ${when}`);
    await Promise.all(
      [10, 100, 1000].map(async (count) => {
        const { sum, cpus } = await pool.run(count);
        console.log(`CPU ${cpus}: the first ${count} squares are ${sum}`);
      }),
    );
    await pool.destroy();
  });
  manager.close();
}

if (isMainThread) await main(process.env);
