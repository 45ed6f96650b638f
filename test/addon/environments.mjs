// environments.mjs SEED ROUNDS FOLDER [main]: starts Workers that use the addon, and ends them in
// the middle of it. They alone load the addon unless `main` is given. Prints "survived".
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Random } from '../torture/random.mjs';

const [seed, rounds, folder, who] = process.argv.slice(2);
const random = new Random(seed);
if (who === 'main') await import('../../dist/index.js');

const SCRIPT = new URL('environment.mjs', import.meta.url);
const start = (exits) => {
  const workerData = { seed: random.below(2 ** 31), folder, exits };
  // What a Worker left undone is reported there.
  const worker = new Worker(SCRIPT, { workerData, stderr: true });
  worker.on('error', (error) => {
    console.error(error);
    process.exitCode = 1;
  });
  return worker;
};

for (let round = 0; round < Number(rounds); round++) {
  const workers = Array.from({ length: 1 + random.below(3) }, () => start(random.chance(3)));
  await Promise.all(
    workers.map(async (worker) => {
      const ended = once(worker, 'exit');
      await Promise.race([once(worker, 'message'), ended]);
      await new Promise((resolve) => setTimeout(resolve, random.below(40)));
      await worker.terminate();
      await ended;
    }),
  );
}
console.log('survived');
// Some are still at work when the process exits.
if (random.chance(2)) {
  const worker = start(false);
  await once(worker, 'message');
  process.exit();
}
